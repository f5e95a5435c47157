"""Studies that were run again: text, document, page and pictures of what they found."""
