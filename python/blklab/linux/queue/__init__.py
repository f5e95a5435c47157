"""A disk's request queue in sysfs: the scheduler, its tunables, and the queue's attributes."""
