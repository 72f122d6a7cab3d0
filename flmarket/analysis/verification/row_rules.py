"""The rules of ``flmarket verify`` on rows of rounds.csv, and on the order of all rows."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter

import numpy as np

from des.log_records import Kind, Outcome
from des.money import MICRO
from des.observation import Status
from fl.arithmetic.elementary import power, rounded
from fl.arrays import AnyArray, BoolArray, FloatArray
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.verification.findings import Finding, Rows
from scenarios.build import eligibility
from scenarios.file.schema import Service
from scenarios.logs.columns import AMOUNTS

_SIX_DECIMALS = 5e-7  # half a unit of the last decimal of an accuracy
_OVER = "over its budget of {budget} (eq. 4)"


def shape(logs: Logs) -> Iterator[Finding]:
    """Each round from 1 has one row for each service, in the scenario's order, until the run ends; offers follow it."""
    rounds, offers, events = (logs.rows[name] for name in ("rounds", "offers", "events"))
    lines, last, clients = logs.all_rounds, logs.scenario.rounds, logs.scenario.clients.count
    count, (numbers, places) = len(lines) // len(logs.places), np.divmod(np.arange(len(lines)), len(logs.places))
    in_order = np.array_equal(lines["round"], numbers + 1) and np.array_equal(lines["m"], places)
    if not 0 < count <= last or count * len(logs.places) != len(lines) or not in_order:
        yield Finding("rounds.csv does not have one row for each round and service, in order")
        return
    gone: BoolArray = np.all(_gone(rounds).reshape(-1, len(logs.places)), axis=1)
    slots = logs.scenario.timeline.slots
    over = np.zeros(count, dtype=np.bool_) if slots is None else logs.slots[1] >= slots
    for at, all_gone in zip(logs.numbers, gone.tolist(), strict=True):
        if at == count != last and not all_gone and not over[at - 1]:
            yield Finding(f"the run ends after round {count} of {last}, but not all services have left")
        if at != count and all_gone:
            yield Finding(f"the run does not end after round {at}, when all services have left")
        if at != count and over[at - 1]:
            yield Finding(f"the run does not end after round {at}, with slot {slots}")
    if logs.meta.get("rounds", count) != count:
        yield Finding(f"rounds.csv has {count} rounds, but meta.json records {logs.meta['rounds']!r}")
    for table, column, known in ((rounds, "status", Status), (offers, "outcome", Outcome), (events, "event", Kind)):
        yield from table.wrong(~_among(table[column], known), f"unknown {column} {{{column}}}")
    misplaced = np.isnan(events["amount"]) == _among(events["event"], AMOUNTS)
    yield from events.wrong(misplaced, "the event {event} has the amount {amount}")
    if (answers := logs.rows.get("responses")) is not None:
        awarded = offers.where(offers["outcome"] != Outcome.OUTBID)
        if not all(np.array_equal(answers[name], awarded[name]) for name in ("round", "service", "client")):
            yield Finding("responses.csv does not have one row for each award, in order")
    for table, keys in ((offers, logs.places_of(offers)), (events, events["round"])):
        number, client, service = table["round"], table["client"], table["service"]
        yield from table.wrong((number < 1) | (number > count), "the run has no such round")
        yield from table.wrong((table["m"] < 0) & (service == service), "unknown service")
        yield from table.wrong((client < 0) | (client >= clients), f"unknown client; clients are 0 to {clients - 1}")
        for at in np.flatnonzero(keys[:-1] > keys[1:])[:1].tolist():
            yield Finding("the row is out of order", table.table, table["line"][at], f"order of {table.table}")


def scenario(logs: Logs) -> Iterator[Finding]:
    """Data sets, policies, targets, budgets and clients are the scenario's; who gets offers is there and can serve."""
    for key, fit in logs.other_fits.items():
        if fit is not None and fit.digest in logs.meta.get("hashed", ""):
            yield Finding(f"meta.json: fits: {key} is not that of the run's hash")
    for key, right in logs.recorded.items():
        if logs.meta.get(key) != right:
            yield Finding(f"meta.json: {key} is not what the scenario leads to")
    played, offers = [logs.conditions(number) for number in logs.numbers], logs.rows["offers"]
    services = [service for now in played for service in now.scenario.services]
    wanted = {
        "dataset": np.array([it.dataset for it in services], dtype=object),
        "policy": np.array([it.policy for it in services], dtype=object),
        "target_accuracy": _logged([it.target_accuracy for it in services]),
        "budget": np.array([budget for now in played for budget in now.budgets.values()]),
    }
    yield from logs.rows["rounds"].differing(wanted, "the scenario has")
    places = zip(logs.order_of(offers).tolist(), offers["client"].tolist(), strict=True)
    asleep = np.array([client in played[at].offline for at, client in places], dtype=np.bool_)
    yield from offers.wrong(asleep, "the client is offline in this round, but gets an offer")
    if (serves := eligibility(logs.scenario)) is not None:
        unable = ~serves[offers["m"], offers["client"]]
        yield from offers.wrong(unable, "the client's group does not serve this service, but it gets an offer")


def progress(logs: Logs) -> Iterator[Finding]:
    """A service waits until it arrives, trains until it meets its target or its patience is over, and then leaves.

    It keeps its accuracy.
    """
    rounds, exact = logs.rows["rounds"], logs.exact_accuracy
    target = _of_services(logs, lambda it: it.target_accuracy)
    first, last = (np.tile(each, len(logs.numbers)) for each in logs.stay[:2])
    accuracy, left = rounds["accuracy"], _among(rounds["status"], (Status.REACHED, Status.LEFT))
    # Logged accuracies have six decimals. Where these do not tell whether the target was met, the status is believed.
    near = (accuracy > target + _SIX_DECIMALS) | (left & (accuracy >= target - _SIX_DECIMALS))
    met = np.where(np.isnan(exact), near, exact >= target)
    block = slice(logs.numbers.start - 1, logs.numbers.stop - 1)
    slots, ended = (np.repeat(of[block], len(logs.places)) for of in logs.slots)
    had_left, waits, over = _before(logs, _gone, first=False), slots < first, ended >= last
    known = {Status.LEFT: had_left, Status.WAITING: waits, Status.REACHED: met, Status.GAVE_UP: over}
    status = np.select([*known.values()], [*known], Status.TRAINING)
    yield from rounds.differing({"status": status}, "by its arrival, accuracy, target and patience it should be")
    moved = had_left & (accuracy != _before(logs, itemgetter("accuracy")))
    yield from rounds.wrong(moved, "left in an earlier round, but does not keep its accuracy")


def accuracies(logs: Logs) -> Iterator[Finding]:
    """Accuracies are shares of measured images, rewards Omega^accuracy; both change only where a client serves."""
    rounds, exact = logs.rows["rounds"], logs.exact_accuracy
    accuracy, test, waits = rounds["accuracy"], rounds["test_accuracy"], rounds["status"] == Status.WAITING
    idle = (rounds["round"] > 1) & ~logs.renewed
    arrives = (_before(logs, itemgetter("status")) == Status.WAITING) & ~waits  # and has a reward from now on
    for name, still in (("accuracy", idle), ("test_accuracy", idle), ("reward", idle & ~arrives)):
        moved = still & (rounds[name] != _before(logs, itemgetter(name)))
        yield from rounds.wrong(moved, f"no client served, but the {name.replace('_', ' ')} changes to {{{name}}}")
    yield from rounds.wrong((accuracy < 0) | (accuracy > 1), "the accuracy {accuracy} is not between 0 and 1")
    yield from rounds.wrong((test < 0) | (test > 1), "the test accuracy {test_accuracy} is not between 0 and 1")
    tested = np.tile(logs.data.tested, len(logs.numbers))
    of_test = _known(np.rint(test * tested) / tested, test) if logs.scenario.split else accuracy
    yield from rounds.differing({"accuracy": _known(exact, accuracy), "test_accuracy": of_test}, "it can only be")
    # Six decimals do not tell the exact accuracy; where nothing else does, they leave a range of rewards.
    base, target = (_of_services(logs, of) for of in (lambda it: it.reward_base, lambda it: it.target_accuracy))
    met = _gone(rounds) & np.where(np.isnan(exact), accuracy >= target - _SIX_DECIMALS, exact >= target)
    low, high = (
        np.where(waits, 0.0, rounded(power(base, np.clip(np.where(met, target, near), 0.0, target))))
        for near in (np.where(np.isnan(exact), accuracy + by, exact) for by in (-_SIX_DECIMALS, _SIX_DECIMALS))
    )
    other = ~((low <= rounds["reward"]) & (rounds["reward"] <= high))
    yield from rounds.wrong(other, "the reward {reward} is not Omega^accuracy")


def totals(logs: Logs) -> Iterator[Finding]:
    """Each row of rounds.csv says what the service's offers come to, and they are within its budget (eq. 4)."""
    rounds, offers = logs.rows["rounds"], logs.answered
    served, fees = offers.where(offers["outcome"] == Outcome.SERVED), np.zeros(len(rounds))
    part = served["promised"] if logs.scenario.clients.response.of == "data" else MICRO
    served = served.having(trained=-(-served["data_size"] * part // MICRO))
    for place, _, fee in logs.hired.fees:
        fees[place] += fee
    number, works = (np.bincount(logs.places_of(rows), minlength=len(rounds)) for rows in (offers, served))
    wanted = {
        "offered": _each(logs, offers, "payment", sum, 0),
        "spent": _each(logs, served, "paid", math.fsum, 0) + fees,
        "wanted": number,
        "served": works,
        "refused": number - works,
        "samples": _each(logs, served, "trained", sum),
        "mean_emd": _each(logs, served, "emd", _mean),
        "mean_dqi": _each(logs, served, "dqi", _mean),
        "mean_bid": _logged(_each(logs, served, "bid", _mean_money)),
        "mean_payment": _logged(_each(logs, served, "paid", _mean_money)),
        "makespan": _each(logs, served, "end", max) - _each(logs, served, "start", min),
    }
    yield from rounds.differing(wanted, "its offers come to")
    # Other mechanisms than the paper's may let services offer again, or name what clients are worth.
    paper = logs.by_round(rounds, lambda now: now.paper and not now.scenario.market.sequential)
    budget = rounds["budget"]
    yield from rounds.wrong(paper & (wanted["offered"] > budget), f"what it offers is {_OVER}")
    pooled = logs.by_round(rounds, lambda now: now.may("platform_budget"))
    yield from rounds.wrong(~pooled & (wanted["spent"] - fees > budget), f"what it spends is {_OVER}")
    order = logs.order_of(rounds)
    over = np.bincount(order, wanted["spent"] - fees - budget * logs.takes_part) > 0
    yield from rounds.wrong(pooled & over[order], "what all services spend is over all their budgets (eq. 4)")
    absent = ~logs.takes_part & (number > 0)
    yield from rounds.wrong(absent, "the service is {status}, but offers.csv has offers of it in this round")


def _each(
    logs: Logs, offers: Rows, column: str, of: Callable[[Sequence[float]], float], empty: float = np.nan
) -> AnyArray:
    """Return a function of the values in each line of rounds.csv, and ``empty`` where it has none."""
    by_line: list[list[float]] = [[] for _ in logs.rows["rounds"]["line"]]
    for place, value in zip(logs.places_of(offers).tolist(), offers[column].tolist(), strict=True):
        by_line[place].append(value)
    return np.array([of(values) if values else empty for values in by_line])


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _mean_money(values: Sequence[float]) -> float:
    return _mean([value / MICRO for value in values])


def _logged(values: Sequence[float] | FloatArray) -> FloatArray:
    """Return numbers as they read after they were written with six decimals."""
    return np.array([float(f"{value:.6f}") for value in values])


def _known(exact: FloatArray, logged: FloatArray) -> FloatArray:
    """Return exact values as they are logged, and what the log has where they are not known."""
    return np.where(np.isnan(exact), logged, _logged(exact))


def _of_services(logs: Logs, value: Callable[[Service], float]) -> AnyArray:
    """Return something of the service of each line of rounds.csv."""
    return np.array([value(service) for service in logs.scenario.services] * len(logs.numbers))


def _before(logs: Logs, of: Callable[[Rows], AnyArray], *, first: float = np.nan) -> AnyArray:
    """Return a value of the same service one round earlier for each line of rounds.csv; ``first`` in round 1."""
    count, lines = len(logs.places), logs.lines
    values = of(logs.all_rounds.where(slice(max(0, lines.start - count), lines.stop - count)))
    return np.concatenate([np.full(0 if lines.start else count, first, dtype=values.dtype), values])


def _among(values: AnyArray, known: Iterable[str]) -> BoolArray:
    return np.isin(values, list(known))


def _gone(rounds: Rows) -> BoolArray:
    return _among(rounds["status"], [status for status in Status if status.gone])
