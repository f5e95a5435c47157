"""Schedulers built as modules of an installed kernel: patched, renamed, proven to fit, kept by content.

mq-deadline, kyber and bfq may be modules, so the kernel exports every function that a scheduler in its tree
calls. Only the private headers of ``block/`` are missing from a distribution's headers; they are copied from
the matching source, and the layout of their structures is compared with the kernel's own type information
before anything is loaded.
"""
