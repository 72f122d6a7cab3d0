"""Mahdrl: see ``learning.mahdrl.policy``."""

from learning.mahdrl.policy import Mahdrl

__all__ = ["Mahdrl"]
