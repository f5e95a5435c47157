"""Other programs' configuration that would overwrite a disk's scheduler: one file for each program."""
