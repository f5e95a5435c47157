"""The two studies that used ``hdparm -tT``: four schedulers on two machines, and fifteen runs of each."""
