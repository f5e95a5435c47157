"""Published studies: their figures and claims, and whether the figures support the claims."""
