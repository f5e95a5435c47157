"""Setting a disk's scheduler permanently, and undoing that."""
