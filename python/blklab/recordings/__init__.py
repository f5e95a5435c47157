"""Recordings of what reached the block layer, blklab's own and other programs', as NumPy columns."""
