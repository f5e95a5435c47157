"""Analyses results that other tools left behind: reads them, settles the design, compares the levels."""
