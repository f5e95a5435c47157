"""Making a scheduler permanent for a disk, and taking that back."""
