"""Calibration of a disk: measures short loads on it and fits a device profile to them.

The way through: `loads` says what is measured; a `ground` makes one measurement, on a model as on a disk of
this machine; `order` draws the order and chooses further loads; `saved` keeps what was measured; `arm` tells
whether the disk has an arm (`hdd` then calibrates it), `flash` whether addresses tell its dies apart;
`parameters`, `forward` and `fit` find the figures of all others; `document` holds the result, and
`profile_file` writes it. `calibrate` does all of it.
"""
