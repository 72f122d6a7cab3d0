"""The journal of one round: what happens on the market's timeline, in order of time."""

import simpy

from des.money import Micro
from des.rows import Kind, MarketEvent


class Journal:
    """Records the events of one round, each at the simulated time at which it happens."""

    __slots__ = ("_env", "_round", "events")

    def __init__(self, env: simpy.Environment, round_: int) -> None:
        self._env = env
        self._round = round_
        self.events: list[MarketEvent] = []  # what has been recorded so far, in order

    def record(
        self,
        kind: Kind,
        service: str | None = None,
        client: int | None = None,
        core: int | None = None,
        amount: Micro | float | None = None,
    ) -> None:
        """Record an event that happens now. See ``MarketEvent`` for what ``amount`` is."""
        # MarketEvent(...) calls a Python function that does just this, and nothing in a market is called more often.
        event = (self._round, self._env.now, kind, service, client, core, amount)
        self.events.append(tuple.__new__(MarketEvent, event))
