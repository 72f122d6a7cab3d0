"""Oracles of a run: what its seed, its scenario and its offers come to, worked out from the paper and from docs/.

They share no code with the packages: the standard library, NumPy, pandas and PyTorch alone.
"""
