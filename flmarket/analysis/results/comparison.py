"""The effect of a fork's changes: its differences from the run it was forked from, and the rounds they arise in."""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from des.log_records import Outcome
from des.money import MICRO, MicroArray
from des.money import text as money
from des.observation import Status
from fl.arrays import FloatArray
from flmarket.analysis.results.run_results import extended
from flmarket.analysis.tables import lines_of
from flmarket.core.counting import counted, spans
from scenarios.file.schema import Scenario

COLUMNS = ("kind", "name", "measure", "original", "fork", "difference", "first_round", "rounds")
"""Of the table of differences; ``rounds`` lists all rounds that differ, such as ``31-33, 40``."""

DIGITS = {"normalised reward": 4, "served": 0, "exit round": 0, "jobs": 0}
"""Decimals in which measures are shown; of the others 2."""

MOST_SHOWN = 4  # sentences about the first round that differs


class Tables(NamedTuple):
    """A run's rounds from the first one on, and their offers; see ``flmarket.analysis.tables``."""

    rounds: pd.DataFrame
    offers: pd.DataFrame

    @property
    def last(self) -> int:
        """The last round that was played."""
        return int(self.rounds["round"].max())

    def until(self, last: int) -> "Tables":
        return Tables(*(frame[frame["round"] <= last] for frame in self))


class Comparison:
    """A fork compared with its original, over the rounds that both have."""

    def __init__(
        self,
        scenario: Scenario,  # what both play, but for interventions
        original: Tables,
        # If one run ended early because all services had left, it is extended as reports do: accuracy and reward are
        # held, nothing is spent.
        fork: Tables,
        *,
        # how many rounds are compared; the scenario's if not given. Those of a run that was interrupted are fewer.
        rounds: int | None = None,
    ) -> None:
        self._scenario, self._original, self._fork = scenario, original, fork
        self._names = [service.name for service in scenario.services]
        self._total = scenario.rounds if rounds is None else rounds
        count = max(original.last, fork.last)
        self._runs = [_Curves(scenario, tables, count) for tables in (original, fork)]
        self.first = _first(original, fork)  # round in which offers or what came of them differ; None if there is none

    def differences(self) -> pd.DataFrame:
        """Return all measures of all services, and those of the clients that differ, with ``COLUMNS``."""
        rows = [*self._of_services(), *self._of_clients()]
        return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"first_round": "Int64"})

    def _of_services(self) -> Iterator[tuple[object, ...]]:
        for m, service in enumerate(self._scenario.services):
            for measure, column, unit in (
                ("final accuracy", "accuracy", 100),
                ("AUC", "accuracy", 100),
                ("normalised reward", "reward", 1),
                ("spent", "spent", 1),
                ("served", "served", 1),
            ):
                mine, theirs = (getattr(run, column)[:, m] for run in self._runs)
                one, other = (unit * self._value(measure, curve, service.arrival) for curve in (mine, theirs))
                yield _row("service", service.name, measure, one, other, np.flatnonzero(mine != theirs) + 1)
            exits = [run.exit[m] for run in self._runs]
            moved = [number for number in exits if number is not None and exits[0] != exits[1]]
            yield _row("service", service.name, "exit round", exits[0], exits[1], sorted(moved)[:1])

    def _of_clients(self) -> Iterator[tuple[object, ...]]:
        for client in range(self._scenario.clients.count):
            for measure, unit in (("income", MICRO), ("jobs", 1)):
                mine, theirs = (getattr(run, measure)[:, client] for run in self._runs)
                if (mine != theirs).any():
                    rounds = np.flatnonzero(mine != theirs) + 1
                    yield _row("client", str(client), measure, mine.sum() / unit, theirs.sum() / unit, rounds)

    def _value(self, measure: str, curve: FloatArray, arrival: int) -> float:
        if measure == "final accuracy":
            return float(curve[-1])
        if measure in ("spent", "served"):
            return float(curve.sum())
        rest, since = max(0, self._total - len(curve)), curve[arrival - 1 :]
        return float((since.sum() + rest * curve[-1]) / max(1, len(since) + rest))

    def sentences(self) -> Iterator[str]:
        """Yield what happened first, in words, and who left earlier or later."""
        if self.first is None:
            yield "Nothing differs: the change had no effect."
            return
        sentences = list(self._happened(self.first)) or ["the offers are the same, but not their order or their times"]
        for sentence in sentences[:MOST_SHOWN]:
            yield f"round {self.first}: {sentence}"
        if len(sentences) > MOST_SHOWN:
            yield f"round {self.first}: {counted(len(sentences) - MOST_SHOWN, 'more difference')} of this kind"
        one, other = self._runs
        for name, before, after in zip(self._names, one.exit, other.exit, strict=True):
            if before != after:
                yield f"{name} {_left(after)}; in the original it {_left(before)}"

    def _happened(self, number: int) -> Iterator[str]:
        """Yield what differs in a round: who lost and won which client, and what was paid."""
        if number > min(self._original.last, self._fork.last):
            yield "one run had ended"
            return
        before, after = (
            {(it.client, it.service): it for it in lines_of(offers[offers["round"] == number])}
            for offers in (self._original.offers, self._fork.offers)
        )
        had, has = (
            {key for key, offer in offers.items() if offer.outcome == Outcome.SERVED} for offers in (before, after)
        )
        explained: set[tuple[int, str]] = set()
        for client, service in sorted(had - has):
            winners = [other for other in self._names if (client, other) in has - had - explained]
            lost = after.get((client, service))
            if lost is None:
                yield f"{service} no longer wanted client {client}"
            elif winners:
                explained.add((client, winners[0]))
                yield f"{service} lost client {client} to {winners[0]}"
            else:
                became = "was outbid" if lost.outcome == Outcome.OUTBID else "did not deliver in time"
                yield f"{service} lost client {client}, which {became}"
        for client, service in sorted(has - had - explained):
            losers = [other for other in self._names if (client, other) in had - has]
            yield f"{service} won client {client}" + (f", which had served {losers[0]}" if losers else "")
        for client, service in sorted(had & has):
            then, now = before[client, service], after[client, service]
            if then.paid != now.paid:
                yield f"{service} paid client {client} {money(now.paid)} instead of {money(then.paid)}"
            elif then.payment != now.payment:
                yield f"{service} offered client {client} {money(now.payment)} instead of {money(then.payment)}"
        for client, service in sorted((before.keys() | after.keys()) - had - has):
            if (client, service) not in after:
                yield f"{service} no longer wanted client {client}, which had refused"
            elif (client, service) not in before:
                yield f"{service} wanted client {client}, which refused"


class _Curves:
    """The outcomes of a run's rounds, [rounds, services] or [rounds, clients]; incomes in micro-units."""

    def __init__(self, scenario: Scenario, tables: Tables, count: int) -> None:
        """Sum up; rounds that the run did not play are as the last one, without offers."""
        services, (rounds, offers) = len(scenario.services), tables
        at_target = np.array([it.reward_base**it.target_accuracy for it in scenario.services])
        self.accuracy = extended(rounds, "test_accuracy", count, services)
        self.reward = extended(rounds, "reward", count, services) / at_target
        self.spent = extended(rounds, "spent", count, services) / MICRO
        self.served = extended(rounds, "served", count, services)
        self.income: MicroArray = np.zeros((count, scenario.clients.count), np.int64)
        self.jobs = np.zeros_like(self.income)
        paid = offers[offers["paid"].notna()]
        places = paid["round"] - 1, paid["client"]
        np.add.at(self.income, places, paid["paid"].astype(np.int64))
        np.add.at(self.jobs, places, 1)
        reached = rounds[rounds["status"] == Status.REACHED].set_index("service")["round"].to_dict()
        self.exit: list[int | None] = [reached.get(service.name) for service in scenario.services]


def _first(original: Tables, fork: Tables) -> int | None:
    both = min(original.last, fork.last)
    lines = (it.until(both).offers.fillna(-1).itertuples(index=False, name=None) for it in (original, fork))
    for one, other in zip_longest(*lines):
        if one != other:
            return min(int(line[0]) for line in (one, other) if line is not None)
    return both + 1 if original.last != fork.last else None


def _row(kind: str, name: str, measure: str, one: Any, other: Any, rounds: Any) -> tuple[object, ...]:
    amount = None if one is None or other is None else other - one
    values = (None if it is None else round(float(it), 6) + 0.0 for it in (one, other, amount))
    return kind, name, measure, *values, int(rounds[0]) if len(rounds) else None, spans([int(n) for n in rounds])


def _left(round_: int | None) -> str:
    return "never reached its target" if round_ is None else f"reached its target in round {round_}"
