"""`python -m blklab` is the command line."""

from blklab.cli import main

main()
