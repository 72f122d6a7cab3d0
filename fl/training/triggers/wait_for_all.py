"""Waiting for all: the paper's rule, with one group of clients at a time."""

from fl.training.trigger import Gathered, Trigger

__all__ = ["WaitForAll"]


class WaitForAll(Trigger):
    """A new model once every client at work has delivered or is lost; nobody is recruited before. The paper's."""

    def due(self, gathered: Gathered) -> bool:
        return gathered.at_work == 0

    def recruits(self, at_work: int) -> bool:
        return at_work == 0
