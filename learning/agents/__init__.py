"""Trained agents that come with flmarket: tensors, each with its description and provenance in a JSON file."""
