"""Load generators on the host: fio and hdparm, run so that they never outlive blklab."""
