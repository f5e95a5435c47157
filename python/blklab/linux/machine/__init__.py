"""The machine: its description, what it lacks, and what happens on it during a run."""
