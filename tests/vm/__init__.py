"""A stock Debian with its own kernel in QEMU, in which blklab's package is tried as by an administrator."""
