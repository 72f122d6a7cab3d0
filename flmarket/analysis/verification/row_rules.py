"""The rules of ``flmarket verify`` on rows of rounds.csv, and on the order of all rows."""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from des.log_records import Kind, Outcome
from des.money import MICRO, to_micro
from des.observation import Status
from fl.arithmetic.elementary import power, rounded
from fl.arrays import AnyArray, BoolArray, FloatArray
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.verification.findings import Finding, Rows
from scenarios.file.schema import Service
from scenarios.logs.columns import AMOUNTS

_SIX_DECIMALS = 5e-7  # half a unit of the last decimal of an accuracy
_OVER = "over its budget of {budget} (eq. 4)"


def shape(logs: Logs) -> Iterator[Finding]:
    """Each round from 1 has one row for each service, in the scenario's order, until the run ends; offers follow it."""
    rounds, names = logs.rows["rounds"], list(logs.places)
    count = len(rounds) // len(names)
    numbers, services = np.repeat(np.arange(1, count + 1), len(names)).tolist(), names * count
    in_order = rounds["round"].tolist() == numbers and rounds["service"].tolist() == services
    if not 0 < count <= logs.scenario.rounds or not in_order:
        yield Finding("rounds.csv", None, "rounds.csv does not have one row for each round and service, in order")
        return
    gone: BoolArray = np.all(_gone(rounds).reshape(count, -1), axis=1)
    if count != logs.scenario.rounds and not gone[-1]:
        what = f"the run ends after round {count} of {logs.scenario.rounds}, but not all services have left"
        yield Finding("rounds.csv", None, what)
    for at in np.flatnonzero(gone[:-1]):
        yield Finding("rounds.csv", None, f"the run does not end after round {at + 1}, when all services have left")
    if logs.meta.get("rounds", count) != count:
        yield Finding(
            "rounds.csv", None, f"rounds.csv has {count} rounds, but meta.json records {logs.meta['rounds']!r}"
        )
    offers, events, clients = logs.rows["offers"], logs.rows["events"], logs.scenario.clients.count
    for table, column, known in ((rounds, "status", Status), (offers, "outcome", Outcome), (events, "event", Kind)):
        yield from table.wrong(_outside(table[column], {*known}), f"unknown {column} {{{column}}}")
    has_amount = ~_outside(events["event"], {*AMOUNTS})
    yield from events.wrong(
        ~np.isnan(events["amount"]) & ~has_amount, "the event {event} has the amount {amount}, but should have none"
    )
    yield from events.wrong(np.isnan(events["amount"]) & has_amount, "the event {event} has no amount")
    for table in (offers, events):
        number, client = table["round"], table["client"]
        yield from table.wrong((number < 1) | (number > count), "the run has no such round")
        unknown = _outside(table["service"], {*names}) & (table["service"] == table["service"])
        yield from table.wrong(unknown, "unknown service")
        what = f"unknown client; clients are 0 to {clients - 1}"
        yield from table.wrong((client < 0) | (client >= clients), what)
    for table, keys in ((offers, logs.lines_of_offers), (events, events["round"])):
        early = [before > after for before, after in pairwise(keys.tolist())]
        if any(early):
            yield Finding(f"{table.table}.csv", 2 + early.index(True), "the row is out of order")


def _outside(values: AnyArray, known: set[str]) -> BoolArray:
    return np.array([value not in known for value in values.tolist()], dtype=np.bool_)


def scenario(logs: Logs) -> Iterator[Finding]:
    """Data sets, policies, targets, budgets and clients are the scenario's; no offer is made to a client offline."""
    played = [logs.conditions(number) for number in logs.numbers]
    services = [service for now in played for service in now.services.values()]
    wanted = {
        "dataset": np.array([it.dataset for it in services], dtype=object),
        "policy": np.array([it.policy for it in services], dtype=object),
        "target_accuracy": _logged([it.target_accuracy for it in services]),
        "budget": np.array([to_micro(now.budgets[name]) for now in played for name in now.services]),
    }
    yield from logs.rows["rounds"].differing(wanted, "the scenario has")
    offline = np.zeros((len(played), logs.scenario.clients.count), dtype=np.bool_)
    for of_round, now in zip(offline, played, strict=True):
        of_round[list(now.offline)] = True
    offers = logs.rows["offers"]
    asleep = offline[offers["round"] - 1, offers["client"]]
    yield from offers.wrong(asleep, "the client is offline in this round, but gets an offer")


def progress(logs: Logs) -> Iterator[Finding]:
    """A service waits until it arrives, trains until it meets its target, then leaves and keeps its accuracy."""
    rounds, target, exact = logs.rows["rounds"], _of_services(logs, lambda it: it.target_accuracy), logs.exact_accuracy
    accuracy, gone, left = rounds["accuracy"], _gone(rounds), rounds.has("status", Status.LEFT)
    had_left, waits = _before(logs, gone, first=False), rounds.has("status", Status.WAITING)
    too_soon = rounds["round"] < _of_services(logs, lambda it: it.arrival)
    what = "is {status}, which does not fit the round in which the scenario lets it arrive"
    yield from rounds.wrong(~had_left & (waits != too_soon), what)
    kept = left & (accuracy == _before(logs, accuracy))
    yield from rounds.wrong(had_left & ~kept, "left in an earlier round, but does not keep its status and accuracy")
    yield from rounds.wrong(~had_left & left, "left, but did not reach its target before")
    # Logged accuracies have six decimals, and the target may have more.
    early = rounds.has("status", Status.REACHED) & (accuracy < target - _SIX_DECIMALS)
    yield from rounds.wrong(early, "leaves at an accuracy of {accuracy}, below its target of {target_accuracy}")
    late = rounds.has("status", Status.TRAINING) & (accuracy > target + _SIX_DECIMALS)
    yield from rounds.wrong(late, "stays at an accuracy of {accuracy}, above its target of {target_accuracy}")
    met = ~np.isnan(exact) & ~waits & ((exact >= target) != gone)
    what = "is {status}, which does not follow from its accuracy of {accuracy} and its target of {target_accuracy}"
    yield from rounds.wrong(met & ~early & ~late, what)


def accuracies(logs: Logs) -> Iterator[Finding]:
    """Accuracies are shares of measured images, rewards Omega^accuracy; both change only where a client serves."""
    rounds, idle = logs.rows["rounds"], _idle(logs)
    for name, words in (("accuracy", "accuracy"), ("test_accuracy", "test accuracy")):
        accuracy = rounds[name]
        moved = idle & (accuracy != _before(logs, accuracy))
        yield from rounds.wrong(moved, f"no client served, but the {words} changes to {{{name}}}")
        yield from rounds.wrong((accuracy < 0) | (accuracy > 1), f"the {words} {{{name}}} is not between 0 and 1")
    wanted = {"accuracy": _known(logs.exact_accuracy, rounds["accuracy"]), "test_accuracy": rounds["accuracy"]}
    if logs.scenario.split:
        tested = _of_services(logs, lambda it: logs.data.tested.get(it.name, np.nan))
        wanted["test_accuracy"] = _known(np.rint(rounds["test_accuracy"] * tested) / tested, rounds["test_accuracy"])
    yield from rounds.differing(wanted, "it can only be")
    yield from _rewards(logs)


def _rewards(logs: Logs) -> Iterator[Finding]:
    rounds, target, exact = logs.rows["rounds"], _of_services(logs, lambda it: it.target_accuracy), logs.exact_accuracy
    accuracy, reward = rounds["accuracy"], rounds["reward"]
    waits, gone = rounds.has("status", Status.WAITING), _gone(rounds)
    yield from rounds.wrong(waits & (reward != 0), "the reward {reward} is not 0 before it arrives")
    base = _of_services(logs, lambda it: it.reward_base)
    # Six decimals do not tell the exact accuracy; where nothing else does, they leave a range of rewards.
    low, high = (
        rounded(power(base, np.clip(np.where(gone, target, near), 0.0, target)))
        for near in (np.where(np.isnan(exact), accuracy + by, exact) for by in (-_SIX_DECIMALS, _SIX_DECIMALS))
    )
    other = ~waits & ~((low <= reward) & (reward <= high))
    yield from rounds.wrong(other, "the reward {reward} is not Omega^accuracy")
    still = _idle(logs) & (accuracy == _before(logs, accuracy)) & ~_before(logs, waits, first=False)
    moved = still & (reward != _before(logs, reward))
    yield from rounds.wrong(moved, "no client served, but the reward changes to {reward}")


def totals(logs: Logs) -> Iterator[Finding]:
    """Each row of rounds.csv says what the service's offers come to, and they are within its budget (eq. 4)."""
    rounds, offers = logs.rows["rounds"], logs.rows["offers"]
    is_served = offers.has("outcome", Outcome.SERVED)
    made, served = _Grouped(logs, offers, np.ones_like(is_served)), _Grouped(logs, offers, is_served)
    ends, starts = served.each("end", max), served.each("start", min)
    wanted = {
        "offered": made.each("payment", sum, 0),
        "spent": served.each("paid", math.fsum, 0),
        "wanted": made.sizes,
        "served": served.sizes,
        "refused": made.sizes - served.sizes,
        "samples": served.each("data_size", sum),
        "mean_emd": served.each("emd", _mean),
        "mean_dqi": served.each("dqi", _mean),
        "mean_bid": _logged(served.each("bid", _mean_money)),
        "mean_payment": _logged(served.each("paid", _mean_money)),
        "makespan": ends - starts,
    }
    yield from rounds.differing(wanted, "its offers come to")
    # Other mechanisms than the paper's may let services offer again, or name what clients are worth.
    paper = logs.by_round(rounds, lambda now: now.paper)
    budget = rounds["budget"]
    yield from rounds.wrong(paper & (wanted["offered"] > budget), f"what it offers is {_OVER}")
    yield from rounds.wrong(wanted["spent"] > budget, f"what it spends is {_OVER}")
    absent = ~logs.takes_part & (wanted["wanted"] > 0)
    for status, why in ((Status.LEFT, "has left the market"), (Status.WAITING, "has not arrived yet")):
        makes = absent & rounds.has("status", status)
        yield from rounds.wrong(makes, f"the service {why}, but offers.csv has offers of it in this round")


class _Grouped:
    """The offers to which a mask applies, by the line of rounds.csv that they belong to."""

    def __init__(self, logs: Logs, offers: Rows, which: BoolArray) -> None:
        lines, places = logs.lines_of_offers[which], np.arange(len(logs.rows["rounds"]))
        self._offers, self._which = offers, which
        first, after = np.searchsorted(lines, places), np.searchsorted(lines, places, side="right")
        self.sizes = after - first
        self._spans = list(zip(first.tolist(), after.tolist(), strict=True))

    def each(self, column: str, of: Callable[[Sequence[float]], float], empty: float = np.nan) -> AnyArray:
        """Return a function of each line's values, and ``empty`` where it has none."""
        values = self._offers[column][self._which].tolist()
        return np.array([of(values[first:after]) if first < after else empty for first, after in self._spans])


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _mean_money(values: Sequence[float]) -> float:
    return _mean([value / MICRO for value in values])


def _logged(values: Sequence[float] | FloatArray) -> FloatArray:
    """Return numbers as they read after they were written with six decimals."""
    return np.array([float(f"{value:.6f}") for value in values])


def _known(exact: FloatArray, found: FloatArray) -> FloatArray:
    """Return exact values as they are logged, and what was found where they are not known."""
    return np.where(np.isnan(exact), found, _logged(exact))


def _of_services(logs: Logs, value: Callable[[Service], float]) -> AnyArray:
    """Return something of the service of each line of rounds.csv."""
    return np.array([value(service) for service in logs.scenario.services] * len(logs.numbers))


def _before(logs: Logs, values: AnyArray, *, first: float = np.nan) -> AnyArray:
    """Return the value of the same service one round earlier for each line of rounds.csv; ``first`` in round 1."""
    count = len(logs.places)
    return np.concatenate([np.full(count, first, dtype=values.dtype), values[:-count]])


def _idle(logs: Logs) -> BoolArray:
    """Return whether no client served in each line of rounds.csv; False in the first round, which has none before."""
    idle: BoolArray = (logs.rows["rounds"]["round"] > 1) & (logs.rows["rounds"]["served"] == 0)
    return idle


def _gone(rounds: Rows) -> BoolArray:
    return rounds.has("status", Status.REACHED, Status.LEFT)
