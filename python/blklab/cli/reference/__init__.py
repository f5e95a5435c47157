"""Generated reference material: JSON schemas."""
