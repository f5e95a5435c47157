"""The analysis of other tools' values: text, JSON, HTML, and the page of the published studies."""
