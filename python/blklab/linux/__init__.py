"""Control of the host: its disks, their queues, load on them, and the journal that restores every setting."""
