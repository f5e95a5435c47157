"""Guest kernels: obtain a source, patch, configure, build, and keep the result in a cache.

`store` finds what was built; `building` builds. A guest kernel is User-mode Linux: the kernel as an ordinary
program, so that real scheduler code runs as an ordinary user's process, in virtual time.
"""
