"""SVG primitives: elements, marks, axes, and the palette of schedulers."""
