"""What values that other tools left behind support: their design, the comparisons it allows, claims."""
