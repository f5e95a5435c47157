"""Calibration of disks with an arm: designed experiments, and profiles of kind ``hdd``.

`loads` says what is measured and for which figure; `figures` holds the figures and the closed forms that they
imply; `mechanics` fits rotation, tracks, seeks and the interface; `memory` finds what the disk's memory does;
`calibrate` does all of it.
"""
