"""Reports of an analysed experiment: for machines (JSON), for terminals, and as one HTML file."""
