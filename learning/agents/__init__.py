"""Trained agents that come with flmarket: tensors, and beside each its description and provenance."""
