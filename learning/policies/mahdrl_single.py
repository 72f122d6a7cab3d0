"""MahdrlSingle: see ``learning.mahdrl.policy``."""

from learning.mahdrl.policy import MahdrlSingle

__all__ = ["MahdrlSingle"]
