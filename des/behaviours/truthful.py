"""Truthful, as in the paper: see ``des.behaviours.behaviour``."""

from des.behaviours.behaviour import Truthful

__all__ = ["Truthful"]
