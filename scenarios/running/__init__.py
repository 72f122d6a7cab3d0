"""Playing runs: one, many at a time, on many machines, and again after an interruption."""
