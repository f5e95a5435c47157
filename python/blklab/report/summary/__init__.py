"""Facts that every form of the report states: how the experiment went, who stands where, how to repeat it."""
