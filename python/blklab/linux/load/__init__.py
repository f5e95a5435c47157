"""Load generators on the host: fio and hdparm, as processes that never outlive blklab."""
