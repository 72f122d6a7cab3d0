"""MahdrlSingle: see ``learning.mahdrl.agent``."""

from learning.mahdrl.agent import MahdrlSingle

__all__ = ["MahdrlSingle"]
