"""Flash drives: those whose addresses tell the dies apart.

Loads at chosen addresses show dies, program units and channels; long writes show the buffer and the cache of
fast cells; all other figures are fitted with the simulator as the model.
"""
