"""MahdrlPaper: see ``learning.mahdrl.paper.policy``."""

from learning.mahdrl.paper.policy import MahdrlPaper

__all__ = ["MahdrlPaper"]
