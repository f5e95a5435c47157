"""Applications of experiments; each asks one kind of question and has its documents, text and page.

A laboratory imports the core (`blklab.experiment` and below) and not its neighbours, with three exceptions:
tuning and iocost calibrate, studies read published claims again, and the gate judges and tortures.
"""
