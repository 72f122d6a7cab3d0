"""``flmarket value``: what each client that served was worth to a service, on real training.

A client's value in a round is the service's accuracy after the round minus what it would have been without the client:
all clients that served are trained again from the same global model, and the updates of the others are averaged. The
training is replayed from the first round, of that service alone, as no other changes it. After each round its accuracy
must be that of the log.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from des.money import MICRO, Micro
from des.money import text as money
from des.records import Status
from des.rows import Outcome
from fl.errors import InputError
from fl.names import unknown
from fl.tracking import tracked
from scenarios.build import Shelf, backend_of, build_federation
from scenarios.file.schema import Scenario
from scenarios.judging.evidence import Logs
from scenarios.judging.rerun import require_repeatable
from scenarios.judging.verify import read_whole
from scenarios.logs.directory import RunDirectory
from scenarios.plugins import require_same_plugins

COLUMNS = ("round", "client", "data_size", "emd", "dqi", "bid", "paid", "accuracy", "accuracy_without", "value")
"""The columns of the table, data as clients report them."""

FEWEST = 3
"""Values that a correlation takes."""


@dataclass(frozen=True, slots=True)
class Value:
    """What one client was worth to the service in one round.

    Attributes:
        round, client: which.
        data_size, emd, dqi: of its data, as it reports them.
        bid, paid: micro-units.
        accuracy: of the service after the round.
        without: what that would have been without the client.
    """

    round: int
    client: int
    data_size: int
    emd: float
    dqi: float
    bid: Micro
    paid: Micro
    accuracy: float
    without: float

    @property
    def value(self) -> float:
        """What the client added to the accuracy."""
        return self.accuracy - self.without

    def cells(self) -> tuple[object, ...]:
        """Return a row of ``COLUMNS``."""
        accuracies = (f"{number:.6f}" for number in (self.accuracy, self.without, self.value))
        data = self.round, self.client, self.data_size, self.emd, self.dqi
        return (*data, money(self.bid), money(self.paid), *accuracies)


def values(
    run: RunDirectory, service: str, rounds: Collection[int], shelf: Shelf, *, workers: int = 1
) -> Iterator[Value]:
    """Yield what each client that served was worth, by round, then in the order in which the service chose.

    Args:
        run: a complete run.
        service: one of its services.
        rounds: from 1; a round in which nobody served the service has no values.
        shelf: gives the data sets.
        workers: training threads.

    Raises:
        InputError: there is no such service or round, nothing was trained, the data or the arithmetic are others than
            those of the run, or training gives another accuracy than its log has.
        RunError: training failed.
    """
    logs = read_whole(run)
    _require(logs, service, rounds)
    scenario = logs.scenario
    if not (backend := backend_of(scenario)).trains:
        raise InputError(f"{run.path}: nothing was trained: training.backend is {backend.name!r}; value needs 'real'")
    require_same_plugins(logs.meta.get("plugins", {}), str(run.path))
    alone = scenario.model_copy(update={"services": [it for it in scenario.services if it.name == service]})
    require_repeatable(run, alone, shelf)
    yield from _played(run, logs, alone, rounds, shelf, workers)


def _require(logs: Logs, service: str, rounds: Collection[int]) -> None:
    if service not in logs.places:
        raise InputError(unknown("service", service, list(logs.places)))
    for number in sorted(rounds):
        if number not in logs.rows_of:
            raise InputError(f"unknown round {number}; the run has rounds 1 to {logs.numbers[-1]}")
    first = min(rounds)
    if any(row["service"] == service and row["status"] == Status.LEFT for row in logs.rows_of[first]):
        raise InputError(f"service {service!r} had left before round {first}")


def _played(
    run: RunDirectory, logs: Logs, alone: Scenario, rounds: Collection[int], shelf: Shelf, workers: int
) -> Iterator[Value]:
    from fl.federation import RealFederation  # brings torch

    service = alone.services[0].name
    federation = cast("RealFederation", build_federation(alone, logs.seed, shelf, workers=workers))
    try:
        for number in tracked(range(1, max(rounds) + 1), "rounds"):
            served = [row for row in logs.offers_of.get((number, service), ()) if row["outcome"] is Outcome.SERVED]
            without = np.empty(0)
            if served and number in rounds:
                without = federation.leave_one_out(number, logs.jobs(number, served))
            elif served:
                federation.train_round(number, logs.jobs(number, served))
            accuracy = federation.accuracy(service)
            _compare(run, logs, number, service, accuracy)
            for row, other in zip(served, without.tolist(), strict=False):
                data = row["data_size"], row["emd"], row["dqi"], row["bid"], row["paid"]
                yield Value(number, row["client"], *data, accuracy, other)
    finally:
        federation.close()


def _compare(run: RunDirectory, logs: Logs, number: int, service: str, accuracy: float) -> None:
    [logged] = [row["accuracy"] for row in logs.rows_of[number] if row["service"] == service]
    if f"{accuracy:.6f}" != f"{logged:.6f}":
        raise InputError(
            f"{run.path}: round {number}: {service} has an accuracy of {accuracy:.6f} when its training is replayed, "
            f"{logged:.6f} in the log; see flmarket verify --rerun"
        )


def correlations(found: Sequence[Value]) -> Iterator[str]:
    """Yield Pearson's correlation of value with DQI, then with payment, in words."""
    for what, other in (("DQI", [it.dqi for it in found]), ("payment", [it.paid / MICRO for it in found])):
        words = f"Correlation of value with {what}, n = {len(found)}: "
        worth = [it.value for it in found]
        if len(found) < FEWEST:
            yield f"{words}not defined for fewer than {FEWEST} values."
        elif np.ptp(worth) == 0 or np.ptp(other) == 0:
            yield f"{words}not defined, as one of the two never varies."
        else:
            yield f"{words}{np.corrcoef(worth, other)[0, 1]:+.2f}."
