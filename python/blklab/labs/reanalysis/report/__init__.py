"""Renders the analysis of other tools' results: text, JSON, HTML."""
