"""Records what reaches the disks beneath a path."""
