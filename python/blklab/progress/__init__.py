"""Progress on standard error, for the command line and the Python face."""
