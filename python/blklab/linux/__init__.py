"""The host's controls: disks and what lies on them, queue settings, the journal that puts them back."""
