"""Truthful, as in the paper: see ``des.behaviour``."""

from des.behaviour import Truthful

__all__ = ["Truthful"]
