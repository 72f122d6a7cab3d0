"""Federated learning: data, data quality, models, local training and aggregation.

The ground floor: imports none of the other packages. ``import fl`` itself brings no torch.
"""
