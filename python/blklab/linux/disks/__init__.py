"""Block devices: the disks beneath a path, whether a device is in use, and loop devices of our own."""
