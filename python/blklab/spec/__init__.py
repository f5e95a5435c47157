"""The experiment a person asks for, each part with its grammar, and the plan of runs that follows from it."""
