"""Many markets at once, as arrays: for training and for benchmarks.

The rounds are those of ``des.Market`` to the last bit, because the same functions draw the world, clear the offers and
follow the learning curves; only SimPy's clock and the logs are left out. See ``learning.lockstep.lockstep``.
"""
