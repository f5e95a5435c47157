"""The playground: one self-contained page that shows simulated disks and schedulers, to be changed."""
