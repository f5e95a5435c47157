"""Guest kernels as processes of this machine: scratch directory, boot, watchdog, shutdown.

A guest is User-mode Linux: a kernel built as a program and run by an ordinary user. This package knows no
schedulers, workloads or samples.
"""
