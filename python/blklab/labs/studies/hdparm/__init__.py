"""Two studies with ``hdparm -tT``: four schedulers on two machines, and fifteen runs of each scheduler."""
