"""Renders the result of a replication: text, JSON, HTML, pictures."""
