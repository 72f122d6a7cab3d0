"""An independent recomputation of runs, from their logs and files alone.

It shares no code with the packages: it imports the standard library, NumPy and PyTorch (`tests/audit` shows that it is
so), and was written from the paper's equations and from docs/. What the simulator says of a run is worked out a second
time, and each difference is a sentence.
"""
