"""A stock Debian with its own kernel in QEMU, in which blklab's own package is tried as an administrator would."""
