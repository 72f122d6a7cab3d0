"""Fits from experiments: the data quality indicator, and the surrogate's learning curves."""
