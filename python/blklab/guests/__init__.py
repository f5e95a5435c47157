"""Guest kernels as processes of this machine: a scratch folder to live in, booting, watching, ending.

A guest is user-mode Linux: a kernel built as a program, run by an ordinary user. Nothing here knows
schedulers, workloads or samples.
"""
