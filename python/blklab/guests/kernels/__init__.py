"""Guest kernels: obtain a source, patch it, configure it, build it, and cache the result.

`building` builds kernels; `store` finds built ones. A guest kernel is User-mode Linux: the kernel as an
ordinary program, so that real scheduler code runs in an ordinary user's process, in virtual time.
"""
