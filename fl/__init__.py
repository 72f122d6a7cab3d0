"""Federated learning: data, data quality, models, local training and aggregation.

Imports ``flmarket.core`` and none of the other packages. ``import fl`` itself brings no torch.
"""
