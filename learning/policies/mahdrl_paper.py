"""MahdrlPaper: see ``learning.mahdrl.paper``."""

from learning.mahdrl.paper import MahdrlPaper

__all__ = ["MahdrlPaper"]
