"""Control groups for jobs, under cgroup v1 (blkio) and v2 (io)."""
