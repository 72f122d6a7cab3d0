"""Mahdrl: see ``learning.mahdrl.agent``."""

from learning.mahdrl.agent import Mahdrl

__all__ = ["Mahdrl"]
