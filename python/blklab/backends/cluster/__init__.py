"""The workers of a Dask cluster (dask.distributed), in place of this machine.

`client` sends simulations and guests; `tasks` is what a worker runs; `contents` carries kernels and programs
there; `release` lets a worker notice that nobody waits for a task any more.
"""
