"""The machine: its description, missing requirements, and events during a run."""
