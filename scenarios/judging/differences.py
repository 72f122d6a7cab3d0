"""What a fork's changes came to: its differences from the run it was forked from, and the rounds they arise in."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from des.log_records import OfferReport, Outcome
from des.money import MICRO
from des.money import text as money
from des.observation import Status
from fl.arrays import FloatArray, IntArray
from flmarket.core.counting import counted, spans
from scenarios.file.schema import Scenario
from scenarios.logs.reading import LoggedRound

COLUMNS = ("kind", "name", "measure", "original", "fork", "difference", "first_round", "rounds")
"""The columns of the table; ``rounds`` lists all rounds that differ, such as ``31-33, 40``."""

MOST_TOLD = 4  # sentences about the first round that differs


@dataclass(frozen=True, slots=True)
class Difference:
    """One measure of one service or client, in both runs."""

    kind: str  # service or client
    name: str  # the service, or the client's number
    measure: str  # what is compared
    original: float | None  # its value there; None where there is none (an exit that never comes), as of ``fork``
    fork: float | None
    rounds: tuple[int, ...]  # those in which the runs differ in it
    digits: int = 2  # decimals in which it is shown

    @property
    def amount(self) -> float | None:
        return None if self.original is None or self.fork is None else self.fork - self.original

    @property
    def spans(self) -> str:
        return spans(self.rounds)

    def texts(self) -> tuple[str, str, str]:
        """Return both values and the difference as tables show them; ``-`` where there is none."""
        values = (self.original, ""), (self.fork, ""), (self.amount, "+")
        one, other, amount = (
            "-" if it is None else f"{round(it, self.digits) + 0.0:{sign}.{self.digits}f}" for it, sign in values
        )
        return one, other, amount

    def row(self) -> tuple[object, ...]:
        """Return its values of ``COLUMNS``; numbers have six decimals at most, and are None where there is none."""
        numbers = (None if it is None else round(it, 6) + 0.0 for it in (self.original, self.fork, self.amount))
        first = self.rounds[0] if self.rounds else None
        return self.kind, self.name, self.measure, *numbers, first, self.spans


class Comparison:
    """A fork beside its original, over the rounds that both have."""

    def __init__(
        self,
        scenario: Scenario,  # what both play, but for interventions
        original: Sequence[LoggedRound],  # the rounds of the run, from the first on
        # those of the fork. If one run ended early because all services had left, it is extended as reports do:
        # accuracy and reward are held, nothing is spent.
        fork: Sequence[LoggedRound],
        *,
        # how many rounds are compared; the scenario's if not given. Those of a run that was interrupted are fewer.
        rounds: int | None = None,
    ) -> None:
        self._names = [service.name for service in scenario.services]
        self._clients = scenario.clients.count
        count = max(len(original), len(fork))
        self._runs = [_Figures(scenario, rounds, count) for rounds in (original, fork)]
        self._total = scenario.rounds if rounds is None else rounds
        self._arrivals = [service.arrival for service in scenario.services]
        pairs = enumerate(zip(original, fork, strict=False), start=1)
        different = (number for number, (one, other) in pairs if one.text["offers"] != other.text["offers"])
        longer = min(len(original), len(fork)) + 1 if len(original) != len(fork) else None
        # The first round in which offers or what came of them differ; None if there is none.
        self.first: int | None = next(different, longer)
        self._original, self._fork = original, fork

    def differences(self) -> Iterator[Difference]:
        """Yield all measures of all services, and those of the clients that differ."""
        one, other = self._runs
        for m, name in enumerate(self._names):
            mean = partial(self._mean, arrival=self._arrivals[m])
            yield self._of_service(m, name, "final accuracy", lambda run: run.accuracy, lambda x: 100 * float(x[-1]))
            yield self._of_service(m, name, "AUC", lambda run: run.accuracy, partial(mean, unit=100))
            yield self._of_service(m, name, "normalised reward", lambda run: run.reward, mean, 4)
            yield self._of_service(m, name, "spent", lambda run: run.spent, lambda x: float(x.sum()) / MICRO)
            yield self._of_service(m, name, "served", lambda run: run.served, lambda x: float(x.sum()), 0)
            exits = one.exit[m], other.exit[m]
            moved = [number for number in exits if number is not None and exits[0] != exits[1]]
            yield Difference("service", name, "exit round", *exits, tuple(sorted(moved)[:1]), 0)
        for client in range(self._clients):
            for measure, earned, scale, digits in (("income", True, MICRO, 2), ("jobs", False, 1, 0)):
                mine, theirs = ((run.income if earned else run.jobs)[:, client] for run in self._runs)
                if rounds := _differing(mine, theirs):
                    sums = float(mine.sum()) / scale, float(theirs.sum()) / scale
                    yield Difference("client", str(client), measure, *sums, rounds, digits)

    def _of_service(
        self,
        m: int,
        name: str,
        measure: str,
        column: Callable[["_Figures"], FloatArray | IntArray],
        value: Callable[[FloatArray | IntArray], float],
        digits: int = 2,
    ) -> Difference:
        mine, theirs = (column(run)[:, m] for run in self._runs)
        return Difference("service", name, measure, value(mine), value(theirs), _differing(mine, theirs), digits)

    def _mean(self, held: FloatArray | IntArray, arrival: int, unit: float = 1.0) -> float:
        """Return the mean over the rounds from an arrival on, of what is held after the last one played."""
        rest, since = max(0, self._total - len(held)), held[arrival - 1 :]
        return unit * float((since.sum() + rest * held[-1]) / max(1, len(since) + rest))

    def sentences(self) -> Iterator[str]:
        """Yield what happened first, in words, and who left earlier or later."""
        if self.first is None:
            yield "Nothing differs: the change had no effect."
            return
        told = list(self._happened(self.first))
        for sentence in told[:MOST_TOLD]:
            yield f"round {self.first}: {sentence}"
        if len(told) > MOST_TOLD:
            yield f"round {self.first}: {counted(len(told) - MOST_TOLD, 'more difference')} of this kind"
        one, other = self._runs
        for name, before, after in zip(self._names, one.exit, other.exit, strict=True):
            if before != after:
                yield f"{name} {_left(after)}; in the original it {_left(before)}"

    def _happened(self, number: int) -> Iterator[str]:
        """Yield what differs in a round: who lost and won which client, and what was paid."""
        if number > min(len(self._original), len(self._fork)):
            yield "one run had ended"
            return
        before, after = (
            {(offer.client, offer.service): offer for offer in rounds[number - 1].offers}
            for rounds in (self._original, self._fork)
        )
        had, has = (
            {key for key, offer in offers.items() if offer.outcome is Outcome.SERVED} for offers in (before, after)
        )
        explained: set[tuple[int, str]] = set()
        for client, service in sorted(had - has):
            winners = [other for other in self._names if (client, other) in has - had - explained]
            lost = after.get((client, service))
            if lost is not None and winners:
                explained.add((client, winners[0]))
                yield f"{service} lost client {client} to {winners[0]}"
            elif lost is not None:
                yield f"{service} lost client {client}, which {_became(lost)}"
            else:
                yield f"{service} no longer wanted client {client}"
        for client, service in sorted(has - had - explained):
            losers = [other for other in self._names if (client, other) in had - has]
            yield f"{service} won client {client}" + (f", which had served {losers[0]}" if losers else "")
        for client, service in sorted(had & has):
            paid = before[client, service].paid, after[client, service].paid
            if paid[0] != paid[1]:
                yield f"{service} paid client {client} {money(paid[1] or 0)} instead of {money(paid[0] or 0)}"
            elif (now := after[client, service].payment) != (then := before[client, service].payment):
                yield f"{service} offered client {client} {money(now)} instead of {money(then)}"
        for client, service in sorted((before.keys() | after.keys()) - had - has):
            if (client, service) not in after:
                yield f"{service} no longer wanted client {client}, which had refused"
            elif (client, service) not in before:
                yield f"{service} wanted client {client}, which refused"
        if before == after:
            yield "the offers are the same, but not their times"


class _Figures:
    """What a run's rounds came to, [rounds, services] or [rounds, clients]; money in micro-units."""

    def __init__(self, scenario: Scenario, rounds: Sequence[LoggedRound], count: int) -> None:
        """Sum up; rounds that the run did not play are as the last one, without offers."""
        rows = [logged.services for logged in rounds]
        at_target = [it.reward_base**it.target_accuracy for it in scenario.services]
        shape = count, len(scenario.services)
        self.accuracy, self.reward = np.zeros(shape), np.zeros(shape)
        self.spent, self.served = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self.income = np.zeros((count, scenario.clients.count), np.int64)
        self.jobs = np.zeros_like(self.income)
        self.exit: list[int | None] = [None] * shape[1]
        for n, row in enumerate(rows):
            for m, service in enumerate(row):
                self.accuracy[n:, m], self.reward[n:, m] = service.test_accuracy, service.reward / at_target[m]
                self.spent[n, m], self.served[n, m] = service.spent, service.served
                if service.status is Status.REACHED:
                    self.exit[m] = n + 1
            for offer in rounds[n].offers:
                if offer.paid is not None:
                    self.income[n, offer.client] += offer.paid
                    self.jobs[n, offer.client] += 1


def _differing(one: FloatArray | IntArray, other: FloatArray | IntArray) -> tuple[int, ...]:
    return tuple((np.flatnonzero(one != other) + 1).tolist())


def _became(offer: OfferReport) -> str:
    return "was outbid" if offer.outcome is Outcome.OUTBID else "did not deliver in time"


def _left(round_: int | None) -> str:
    return "never reached its target" if round_ is None else f"reached its target in round {round_}"
