"""io.cost's parameters for a disk: the coefficients of its model, and its quality of service.

The way through: `loads` says what is measured; `measuring` makes rounds on a `Ground` of calibration, and
`stages` both kinds of them; `estimates` turns rounds into figures with intervals; `sweep` simulates vrates on
a model of the disk, `vrate_range` reads the range from them, and `model_sweep` does both; `solutions` makes
parameters of all this; `drive` finds the disk's name and number; `document` holds the result, with `remarks`,
and `written` writes it for the kernel and for udev. `determine` calls them all.
"""
