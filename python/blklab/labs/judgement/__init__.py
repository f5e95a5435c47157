"""Judges a change to the kernel: the same questions to two guest kernels in virtual time."""
