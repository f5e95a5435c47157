"""From a path to the disks beneath it, and scratch disks on loop devices."""
