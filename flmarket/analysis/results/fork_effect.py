"""The effect of a fork's changes: its differences from the run it was forked from, and the rounds they arise in."""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

import numpy as np
import pandas as pd

from des.log_records import Outcome
from des.money import MICRO
from des.money import text as money
from flmarket.analysis.log_frames import lines_of
from flmarket.analysis.results.measures import MEASURES
from flmarket.analysis.results.run_results import RunResult
from flmarket.core.text import counted, spans

COLUMNS = ("kind", "name", "measure", "original", "fork", "difference", "first_round", "rounds")
"""Of the table of differences; ``rounds`` lists all rounds that differ, such as ``31-33, 40``."""

COMPARED = {
    "final accuracy": "test_accuracy", "AUC": "test_accuracy", "normalised reward": "reward",
    "spent": "spent", "served": "served",
}  # fmt: skip
"""The measures of services that are compared, and the column of rounds.csv in which their differences arise."""

_RUNS = ("original", "fork")

MOST_SHOWN = 4  # sentences about the first round that differs


class Comparison:
    """A fork compared with its original, over the rounds of their setting."""

    def __init__(self, original: RunResult, fork: RunResult) -> None:
        self._runs = original, fork
        self.first = self._first()  # round in which offers or what came of them differ; None if there is none

    def differences(self) -> pd.DataFrame:
        """Return all measures of all services, and those of the clients that differ, with ``COLUMNS``."""
        rows = [*self._of_services(), *self._of_clients()]
        return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"first_round": "Int64"})

    def _of_services(self) -> Iterator[tuple[object, ...]]:
        last = max(map(_last, self._runs))
        by_measure = {it.name: [it.values(run) for run in self._runs] for it in MEASURES if it.name in COMPARED}
        for m, service in enumerate(self._runs[0].setting.services):
            if not all(run.came[m] for run in self._runs):
                continue
            for measure, column in COMPARED.items():
                mine, theirs = (run[column][:last, m] for run in self._runs)
                one, other = (it[service] for it in by_measure[measure])
                yield _row("service", service, measure, one, other, np.flatnonzero(mine != theirs) + 1)
            before, after = (run.exits[m] for run in self._runs)
            moved = sorted(number for number in (before, after) if number is not None and before != after)
            yield _row("service", service, "exit round", before, after, moved[:1])

    def _of_clients(self) -> Iterator[tuple[object, ...]]:
        paid = {name: run.tables["offers"].dropna(subset="paid") for name, run in zip(_RUNS, self._runs, strict=True)}
        by_round = pd.concat(paid, names=["run"]).groupby(["client", "round", "run"])["paid"]
        totals = by_round.agg(income="sum", jobs="size").unstack()  # noqa: PD010 - nothing is aggregated
        totals = totals.reindex(columns=pd.MultiIndex.from_product([["income", "jobs"], _RUNS])).fillna(0)
        totals["income"] /= MICRO
        for client, lines in totals.groupby("client"):
            for measure in ("income", "jobs"):
                one, other = (lines[measure, name] for name in _RUNS)
                if (one != other).any():
                    rounds = lines.index.get_level_values("round")[one != other]
                    yield _row("client", str(client), measure, one.sum(), other.sum(), rounds)

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
        for name, before, after in zip(one.setting.services, one.exits, other.exits, strict=True):
            if before != after:
                yield f"{name} {_left(after)}; in the original it {_left(before)}"

    def _happened(self, number: int) -> Iterator[str]:
        """Yield what differs in a round: who lost and won which client, and what was paid."""
        if number > min(map(_last, self._runs)):
            yield "one run had ended"
            return
        before, after = (
            {(it.client, it.service): it for it in lines_of(offers[offers["round"] == number])}
            for offers in (run.tables["offers"] for run in self._runs)
        )
        had, has = (
            {key for key, offer in offers.items() if offer.outcome == Outcome.SERVED} for offers in (before, after)
        )
        services, explained = self._runs[0].setting.services, set[tuple[int, str]]()
        for client, service in sorted(had - has):
            winners = [other for other in services if (client, other) in has - had - explained]
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
            losers = [other for other in services if (client, other) in had - has]
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

    def _first(self) -> int | None:
        ends = [_last(run) for run in self._runs]
        last = min(ends)
        offers = (run.tables["offers"] for run in self._runs)
        lines = (it[it["round"] <= last].fillna(-1).itertuples(index=False, name=None) for it in offers)
        for one, other in zip_longest(*lines):
            if one != other:
                return min(int(line[0]) for line in (one, other) if line is not None)
        return last + 1 if ends[0] != ends[1] else None


def _row(kind: str, name: str, measure: str, one: Any, other: Any, rounds: Any) -> tuple[object, ...]:
    amount = None if one is None or other is None else other - one
    values = (None if it is None else round(float(it), 6) + 0.0 for it in (one, other, amount))
    return kind, name, measure, *values, int(rounds[0]) if len(rounds) else None, spans([int(n) for n in rounds])


def _last(run: RunResult) -> int:
    return int(run.tables["rounds"]["round"].max())


def _left(round_: int | None) -> str:
    return "never reached its target" if round_ is None else f"reached its target in round {round_}"
