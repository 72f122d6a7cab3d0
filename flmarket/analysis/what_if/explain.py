"""Explains why a service got the clients that it got in a round, and what it could have had.

Everything follows from the logs and the world that the run's seed draws. What could have been had is worked out for the
paper's mechanism only (``possible``).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from des.log_records import Outcome
from des.mechanism import DEFAULT, Mechanism, known
from des.money import MICRO, Micro
from des.money import text as money
from des.observation import Status
from flmarket.analysis.log_frames import lines_of
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.what_if.agent_view import looked_at
from flmarket.analysis.what_if.possible import Possible, best_set, reported_data, under_changes, worth
from flmarket.analysis.what_if.reasons import at_work, holders, not_served
from flmarket.core.errors import InputError
from flmarket.core.names import unknown
from flmarket.core.text import counted


class Explanation:
    """One service's round."""

    def __init__(self, logs: Logs, number: int, service: str) -> None:
        if service not in logs.places:
            raise InputError(unknown("service", service, list(logs.places)))
        if number not in logs.numbers:
            raise InputError(f"unknown round {number}; the run has rounds 1 to {logs.numbers[-1]}")
        status = logs.rounds_of(number).loc[service, "status"]
        if status in (Status.WAITING, Status.LEFT):
            when = "arrives after" if status == Status.WAITING else "had left before"
            raise InputError(f"service {service!r} {when} round {number}")
        self._logs, self._number, self._service = logs, number, service
        self._m = logs.places[service]
        self._world = logs.world(number)
        self._offers = logs.offers_of(number)
        self._own = logs.offers_of(number, service)
        ends = logs.rounds["sim_time"].to_numpy()[:: len(logs.places)].tolist()
        begin, end = [0, *ends][number - 1 : number + 1]
        # who is still at work from earlier rounds; nobody where rounds end with their work
        self._carried = logs.offers[(logs.offers["round"] < number) & (logs.offers["end"] > begin)]
        jobs = list(lines_of(pd.concat([self._carried, self._offers])))
        self._holders = holders(jobs)
        self._expired = end
        self._now = logs.conditions(number)
        self._budget: Micro = self._now.budgets[service]
        together = self._now.scenario.services[self._m].policy_options.get("together")
        self._union = reported_data(logs, self._world, self._m) if together == "union" else None

    def possible(self, **changes: Any) -> Possible:
        """Return the best set that the service could have had; changes as in ``best_set``."""
        return best_set(self._logs, self._number, self._world, self._service, union=self._union, **changes)

    def sentences(self) -> Iterator[str]:
        got = self._own[self._own["outcome"] == Outcome.SERVED]
        dqi, their, quality = "DQI", "the sum of their DQI", worth(got["dqi"])
        if self._union is not None:
            dqi, their = "union DQI", "the DQI of all their images"
            quality = self._union.worth(got["client"].to_numpy())
        by = f"{len(got)} of them ({', '.join(map(str, got['client']))})" if len(got) else "0"
        yield (
            f"Round {self._number}, {self._service}: wanted {counted(len(self._own), 'client')}, was served by "
            f"{by}, paid {money(round(got['paid'].sum()))} of {money(self._budget)}; {their} is {quality:.4f}."
        )
        for row in self._own.itertuples():
            if row.outcome != Outcome.SERVED:
                yield f"Client {row.client}: {self.why(row)}."
        if self._now.scenario.market.sequential:
            yield self.passed_over()
        mechanism = known(self._now.scenario.market.mechanism)
        if len(got) and mechanism is not None and mechanism.settle is not Mechanism.settle:
            offered = money(round(got["payment"].sum()))
            yield f"The mechanism set prices after delivery; the payments offered to those who served were {offered}."
        if self._logs.responses is not None:
            yield from self.answers()
        yield from looked_at(self._logs, self._number, self._service, self._world)
        if not self._exact:
            rule = self._rule
            what, why = "pay-as-offered", f"this run is cleared by {rule}"
            if rule == DEFAULT:
                what, why = "all of the work", "in this run clients answer how much of it they do"
            yield f"What could have been had is worked out for {what} only; {why}."
            return
        try:
            best = self.possible()
        except InputError as error:
            yield f"What could have been had is not worked out: {error}."
            return
        clients = ", ".join(map(str, best.clients.tolist())) or "none"
        yield (
            f"The best in {dqi} within its budget, the rivals' offers being what they were: clients {clients} for "
            f"{money(best.cost)}, {dqi} {best.quality:.4f} ({best.quality - quality:+.4f})."
        )
        rivals = [name for name in self._offers["service"].unique() if name != self._service]
        changed = under_changes(self.possible, rivals, self._budget)
        for what, other in changed.items():
            yield f"{what}: {dqi} {other.quality:.4f} at best ({other.quality - best.quality:+.4f})."
        if not any(what.startswith("Without ") for what in changed):
            yield "No rival's absence would have bought anything."

    def passed_over(self) -> str:
        """Return to how many of the clients that came one after another it made no offer, and why if money says so."""
        # Of a client that was not paid, the price is not known beyond the bid: it had no more than this.
        own = self._own[self._own["outcome"] != Outcome.OUTBID]
        price = dict(zip(own["client"], own["paid"].where(own["paid"] > 0, own["bid"]), strict=True))
        turns, wanted, bids = self._logs.turns(self._number), {*self._own["client"]}, self._world.bid[self._m]
        left, passed, dear = self._now.free[self._service], 0, 0
        for client in turns:
            passed += client not in wanted
            dear += client not in wanted and bids[client] > left
            left -= price.get(client, 0)
        came = f"{counted(len(turns), 'client')} came one after another"
        why = f", of whom {dear} asked for more money than it had left" if dear else ""
        return f"{came}; it made no offer to {passed} of them{why}."

    @property
    def _exact(self) -> bool:
        """Whether what could have been had is worked out."""
        return self._rule == DEFAULT and self._logs.responses is None

    @property
    def _rule(self) -> str:
        return self._now.scenario.cleared_by(self._now.scenario.market)

    def answers(self) -> Iterator[str]:
        """Yield the answers of the clients that served, in words."""
        rows = self._logs.answered.where(self._logs.span_of(self._number))
        rows = rows.where((rows["service"] == self._service) & (rows["outcome"] == Outcome.SERVED))
        parts = ", ".join(
            f"client {client} {promised / MICRO:.1%}" + (f" (and did {done / MICRO:.1%})" if done < promised else "")
            for client, promised, done in zip(rows["client"], rows["promised"], rows["done"], strict=True)
        )
        if parts:
            yield f"Of their {self._logs.scenario.clients.response.of}, they promised: {parts}."

    def why(self, row: Any) -> str:
        """Return what became of an offer, a line of offers.csv, in words."""
        if row.outcome == Outcome.SERVED:
            return f"served for {money(row.paid)}"
        cores = int(np.broadcast_to(self._now.capacity, self._logs.scenario.clients.count)[row.client])
        stays = (self._logs.online or {}).get(row.client, ())
        gone = self._logs.scenario.clients.offline_work == "lost" and any(row.end == end for _, end in stays)
        return not_served(row, self._holders.get(row.client, []), self._rule, cores, self._expired, gone=gone)

    def table(self) -> pd.DataFrame:
        """Return a line for each client; money in units."""
        best = self.possible() if self._exact else None
        offers = self._own.set_index("client")
        table = pd.DataFrame({"bid": self._world.bid[self._m] / MICRO, "dqi": self._world.dqi[self._m]})
        table.index.name = "client"
        table[["payment", "paid"]], table["outcome"] = offers[["payment", "paid"]] / MICRO, offers["outcome"]
        table["critical_price"] = None if best is None else best.prices / MICRO
        table["in_best_set"] = None if best is None else table.index.isin(best.clients).astype(int)
        table["why"] = pd.Series({row.client: self.why(row) for row in self._own.itertuples()}, dtype=str)
        if (serves := self._world.serves) is not None:
            table.loc[~serves[self._m], "why"] = "does not serve it"
        for job in lines_of(self._carried[self._carried["service"] == self._service]):
            table.loc[job.client, "why"] = at_work(job)
        return table.fillna({"why": "not wanted"}).reset_index()
