"""Why a service got the clients that it got in a round, and what it could have had.

Everything follows from the logs and the world that the run's seed draws. What could have been had is worked out for the
paper's mechanism only (``possible``).
"""

from collections.abc import Iterator, Sequence

from des.log_records import Outcome
from des.money import MICRO, Micro, to_micro
from des.money import text as money
from des.population import Qualities
from fl.arrays import IntArray
from flmarket.core.counting import counted
from flmarket.core.errors import InputError
from flmarket.core.names import unknown
from scenarios.judging.agent import looked_at
from scenarios.judging.evidence import Logs, Row
from scenarios.judging.possible import Possible, possible
from scenarios.judging.reasons import DROPPED, refused

COLUMNS = ("client", "bid", "dqi", "offer", "paid", "outcome", "critical_price", "in_best_set", "why")
"""The columns of the table of clients."""


class Explanation:
    """One service's round."""

    def __init__(self, logs: Logs, number: int, service: str) -> None:
        if service not in logs.places:
            raise InputError(unknown("service", service, list(logs.places)))
        if number not in logs.numbers:
            last = logs.numbers[-1] if logs.numbers else 0
            raise InputError(f"unknown round {number}; the run has rounds 1 to {last}")
        if not logs.known:
            raise InputError("a data set of the run is not known here, or has changed, so its bids cannot be drawn")
        self._logs, self._number, self._service = logs, number, service
        self._m = logs.places[service]
        if not any(row["service"] == service for row in logs.events_in[number]):
            waits = number < logs.scenario.services[self._m].arrival
            raise InputError(
                f"service {service!r} arrives after round {number}"
                if waits
                else f"service {service!r} had left before round {number}"
            )
        self._world: Qualities = next(world for at, world in logs.worlds() if at == number)
        self._offers: dict[str, list[Row]] = {name: [] for name in logs.places}
        for row in logs.offers_in.get(number, []):
            self._offers[row["service"]].append(row)
        conditions = logs.conditions(number)
        self._cores, self._offline = conditions.cores, list(conditions.offline)
        self._budget: Micro = to_micro(conditions.budgets[service])
        self._mechanism = conditions.market.mechanism
        self.paper = conditions.paper

    def possible(
        self,
        *,
        budget: Micro = 0,  # how much more money than it had, micro-units
        cores: int = 0,  # how many more cores than each client had
        without: str | None = None,  # a rival that makes no offers
    ) -> Possible:
        """Return the best set that the service could have had."""
        rivals = [
            [(row["client"], row["payment"]) for row in rows]
            for name, rows in self._offers.items()
            if name not in (self._service, without)
        ]
        return possible(
            self._world.bid[self._m],
            self._world.dqi[self._m],
            rivals,
            cores=self._cores + cores,
            budget=self._budget + budget,
            offline=self._offline,
        )

    def sentences(self) -> Iterator[str]:
        """Yield the explanation in words."""
        rows = self._offers[self._service]
        got = [row for row in rows if row["outcome"] is Outcome.SERVED]
        spent: Micro = sum(row["paid"] for row in got)
        quality = sum(row["dqi"] for row in got)
        yield (
            f"Round {self._number}, {self._service}: wanted {counted(len(rows), 'client')}, was served by {len(got)}, "
            f"paid {money(spent)} of {money(self._budget)}; the sum of their DQI is {quality:.4f}."
        )
        for row in rows:
            if row["outcome"] is not Outcome.SERVED:
                yield f"Client {row['client']}: {self.why(row)}."
        yield from looked_at(self._logs, self._number, self._service, self._world)
        if not self.paper:
            cleared = f"this run is cleared by {self._mechanism}"
            yield f"What could have been had is worked out for pay-as-offered only; {cleared}."
            return
        best = self.possible()
        yield (
            f"The best within its budget, the rivals' offers being what they were: clients "
            f"{_listed(best.clients)} for {money(best.cost)}, DQI {best.quality:.4f} ({best.quality - quality:+.4f})."
        )
        yield from self._one_more(best)

    def _one_more(self, best: Possible) -> Iterator[str]:
        """Yield what one thing more, or one rival less, would have added to the best."""
        rivals = [name for name, rows in self._offers.items() if name != self._service and rows]
        without = {f"Without {name}": self.possible(without=name) for name in rivals}
        changed = {
            "One unit more of budget": self.possible(budget=MICRO),
            "One core more for each client": self.possible(cores=1),
            **{what: other for what, other in without.items() if other.quality > best.quality},
        }
        for what, other in changed.items():
            yield f"{what}: DQI {other.quality:.4f} at best ({other.quality - best.quality:+.4f})."
        if all(other.quality <= best.quality for other in without.values()):
            yield "No rival's absence would have bought anything."

    def why(self, row: Row) -> str:
        """Return what became of an offer, in words."""
        if row["outcome"] is Outcome.SERVED:
            return f"served for {money(row['paid'])}"
        if row["outcome"] is Outcome.DROPPED:
            return DROPPED
        holders = [
            other
            for name, rows in self._offers.items()
            for other in rows
            if name != self._service and other["client"] == row["client"] and other["core"] is not None
        ]
        lowest = min(holders, key=lambda other: other["payment"], default=None)
        by = None if lowest is None else (lowest["service"], lowest["payment"])
        return refused(row["payment"], by, self._mechanism)

    def table(self) -> Iterator[Sequence[object]]:
        """Yield a row of ``COLUMNS`` for each client."""
        of_client = {row["client"]: row for row in self._offers[self._service]}
        best = self.possible() if self.paper else None
        members = set(best.clients.tolist()) if best else set()
        for client in range(self._logs.scenario.clients.count):
            row = of_client.get(client)
            yield (
                client,
                money(int(self._world.bid[self._m, client])),
                float(self._world.dqi[self._m, client]),
                "" if row is None else money(row["payment"]),
                "" if row is None or row["paid"] is None else money(row["paid"]),
                "" if row is None else row["outcome"].value,
                "" if best is None else money(int(best.prices[client])),
                "" if best is None else int(client in members),
                "not wanted" if row is None else self.why(row),
            )


def _listed(clients: IntArray) -> str:
    return ", ".join(map(str, clients.tolist())) or "none"
