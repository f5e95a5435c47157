"""The Python face: run and load experiments, take results as data frames, see their pictures."""
