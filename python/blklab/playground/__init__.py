"""The playground: one self-contained page in which simulated disks and schedulers can be watched and changed."""
