"""Statistics of paired, randomised blocks: intervals, differences, multiplicity, sample size.

Pure functions of numbers. What a number means, and which way is better, is the business of
`blklab.analysis.verdict`.
"""
