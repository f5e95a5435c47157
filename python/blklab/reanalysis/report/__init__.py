"""The analysis of other tools' figures: text, JSON, HTML, and the page of the published studies."""
