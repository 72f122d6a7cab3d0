"""The walk through a round, by the name under which batch runs and screens know it. See ``learning.play``."""

from learning.play import Observer, PolicyFailed, play, play_round

__all__ = ["Observer", "PolicyFailed", "play", "play_round"]
