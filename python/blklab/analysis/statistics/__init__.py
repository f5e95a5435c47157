"""Statistics of paired, randomised blocks: intervals, differences, multiplicity, sample size.

Pure functions of numbers. `blklab.analysis.verdict` and the modules beside it know what a number means and
which way is better.
"""
