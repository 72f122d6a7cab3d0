"""The rules of ``flmarket verify`` on rows of rounds.csv, and on the order of all rows."""

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
import pandas as pd

from des.log_records import Kind, Outcome
from des.money import MICRO, to_micro
from des.observation import Status
from fl.arithmetic.elementary import power, rounded
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.verification.findings import differing, wrong
from scenarios.logs.columns import AMOUNTS

_SIX_DECIMALS = 5e-7  # half a unit of the last decimal of an accuracy
_GONE = (Status.REACHED, Status.LEFT)
_KEYS = ["round", "service"]


def shape(logs: Logs) -> Iterator[str]:
    """Each round from 1 has one row for each service, in the scenario's order, until the run ends; offers follow it."""
    names, rounds = list(logs.places), logs.rounds
    count = len(rounds) // len(names)
    if not 0 < count <= logs.scenario.rounds or list(zip(rounds["round"], rounds["service"], strict=True)) != list(
        product(range(1, count + 1), names)
    ):
        yield "rounds.csv does not have one row for each round and service, in order"
        return
    gone = rounds["status"].isin(_GONE).groupby(rounds["round"]).all()
    if count != logs.scenario.rounds and not gone[count]:
        yield f"the run ends after round {count} of {logs.scenario.rounds}, but not all services have left"
    for number in gone.index[:-1][gone.to_numpy()[:-1]]:
        yield f"the run does not end after round {number}, when all services have left"
    if logs.meta.get("rounds", count) != count:
        yield f"rounds.csv has {count} rounds, but meta.json records {logs.meta['rounds']!r}"
    offers, events, clients = logs.offers, logs.events, logs.scenario.clients.count
    words = (rounds, "status", Status), (offers, "outcome", Outcome), (events, "event", Kind)
    for table, column, known in words:
        yield from wrong(table, ~table[column].isin([*known]), f"unknown {column} {{{column}}}")
    amounts = events["event"].isin([*AMOUNTS])
    yield from wrong(events, events["amount"].notna() != amounts, "a {event} with the amount {amount}")
    for table in (offers, events):
        yield from wrong(table, ~table["round"].between(1, count), "there is no such round")
        yield from wrong(table, table["service"].notna() & ~table["service"].isin(names), "unknown service")
        yield from wrong(
            table, table["client"].notna() & ~table["client"].between(0, clients - 1),
            f"unknown client; clients are 0 to {clients - 1}",
        )  # fmt: skip
    order = pd.DataFrame({"round": offers["round"], "service": offers["service"].map(logs.places)})
    for name, keys in (("offers", order), ("events", events[["round"]])):
        places = list(keys.itertuples(index=False, name=None))
        if places != sorted(places):
            line = next(n for n, pair in enumerate(zip(places, sorted(places), strict=True), 2) if pair[0] != pair[1])
            yield f"{name}.csv, line {line}: the row is out of order"


def scenario(logs: Logs) -> Iterator[str]:
    """Data sets, policies, targets, budgets and clients are the scenario's; no client is wanted offline."""
    wanted = [
        (it.dataset, it.policy, _logged(it.target_accuracy), to_micro(logs.conditions(number).budgets[it.name]))
        for number in logs.numbers
        for it in logs.conditions(number).services.values()
    ]
    columns = ["dataset", "policy", "target_accuracy", "budget"]
    yield from differing(logs.rounds, pd.DataFrame(wanted, columns=columns), "the scenario has")
    offline = [logs.conditions(number).offline for number in logs.offers["round"]]
    asleep = [client in clients for client, clients in zip(logs.offers["client"], offline, strict=True)]
    yield from wrong(logs.offers, asleep, "is offline, but is wanted")


def progress(logs: Logs) -> Iterator[str]:
    """A service trains until it meets its target, then leaves and keeps its accuracy; the reward is Omega^accuracy."""
    rounds = logs.rounds
    services = {service.name: service for service in logs.scenario.services}
    target = rounds["service"].map({name: it.target_accuracy for name, it in services.items()})
    base = rounds["service"].map({name: it.reward_base for name, it in services.items()})
    arrival = rounds["service"].map({name: it.arrival for name, it in services.items()})
    status, accuracy, reward, exact = rounds["status"], rounds["accuracy"], rounds["reward"], logs.exact_accuracy
    before = rounds.groupby("service", sort=False).shift()  # of the first round, nothing
    had_left, gone, waits = before["status"].isin(_GONE), status.isin(_GONE), status == Status.WAITING
    idle = before["round"].notna() & (rounds["served"] == 0)
    moved = idle & (accuracy != before["accuracy"])
    yield from wrong(rounds, ~had_left & (waits != (rounds["round"] < arrival)), "is {status}, but not by its arrival")
    kept = (status == Status.LEFT) & (accuracy == before["accuracy"])
    yield from wrong(rounds, had_left & ~kept, "has left, but does not keep its status and accuracy")
    yield from wrong(rounds, ~had_left & (status == Status.LEFT), "has left without meeting its target")
    # Logged accuracies have six decimals, and the target may have more.
    early = (status == Status.REACHED) & (accuracy < target - _SIX_DECIMALS)
    yield from wrong(rounds, early, "leaves at an accuracy of {accuracy}, below its target of {target_accuracy}")
    late = (status == Status.TRAINING) & (accuracy > target + _SIX_DECIMALS)
    yield from wrong(rounds, late, "stays at an accuracy of {accuracy}, above its target of {target_accuracy}")
    yield from wrong(rounds, moved, "no client served, but the accuracy changes to {accuracy}")
    yield from differing(rounds, pd.DataFrame({"accuracy": exact.map(_logged).fillna(accuracy)}), "it can only be")
    yield from wrong(rounds, ~accuracy.between(0, 1), "the accuracy {accuracy} is not between 0 and 1")
    yield from wrong(rounds, waits & (reward != 0), "the reward {reward} is not 0 before it arrives")
    met = exact.notna() & ~waits & ((exact >= target) != gone)
    yield from wrong(rounds, met, "is {status}, but not by its accuracy and its target of {target_accuracy}")
    # Six decimals do not tell the exact accuracy; where nothing else does, they leave a range of rewards.
    low, high = (
        rounded(power(np.array(base, float), np.array(near.where(~gone, target).clip(0.0, target), float)))
        for near in (exact.fillna(accuracy - _SIX_DECIMALS), exact.fillna(accuracy + _SIX_DECIMALS))
    )
    yield from wrong(rounds, ~waits & ~reward.between(low, high), "the reward {reward} is not Omega^accuracy")
    held = idle & ~moved & (before["status"] != Status.WAITING) & (reward != before["reward"])
    yield from wrong(rounds, held, "no client served, but the reward changes to {reward}")
    yield from _test_accuracy(logs, idle & (rounds["test_accuracy"] != before["test_accuracy"]))


def _test_accuracy(logs: Logs, moved: "pd.Series[bool]") -> Iterator[str]:
    rounds, accuracy = logs.rounds, logs.rounds["test_accuracy"]
    if not logs.scenario.split:
        wanted = rounds["accuracy"]
    else:
        tested = rounds["service"].map(logs.data.tested).astype(float)
        wanted = ((accuracy * tested).round() / tested).map(_logged).fillna(accuracy)
    yield from differing(rounds, pd.DataFrame({"test_accuracy": wanted}), "it can only be")
    yield from wrong(rounds, ~accuracy.between(0, 1), "the test accuracy {test_accuracy} is not between 0 and 1")
    yield from wrong(rounds, moved, "no client served, but the test accuracy changes to {test_accuracy}")


def totals(logs: Logs) -> Iterator[str]:
    """Each row of rounds.csv says what the service's offers come to, and they are within its budget (eq. 4)."""
    rounds, offers = logs.rounds, logs.offers
    served = offers[offers["outcome"] == Outcome.SERVED]
    made, done = offers.groupby(_KEYS), served.groupby(_KEYS)
    columns = {
        "offered": made["payment"].sum(), "spent": done["paid"].sum(), "wanted": made.size(), "served": done.size(),
        "samples": done["data_size"].sum(), "mean_emd": done["emd"].agg(_mean), "mean_dqi": done["dqi"].agg(_mean),
        "mean_bid": done["bid"].agg(_mean_money), "mean_payment": done["paid"].agg(_mean_money),
        "makespan": done["end"].max() - done["start"].min(),
    }  # fmt: skip
    wanted = pd.DataFrame(columns).reindex(pd.MultiIndex.from_frame(rounds[_KEYS])).reset_index(drop=True)
    counts = ["offered", "spent", "wanted", "served"]
    wanted[counts] = wanted[counts].fillna(0)
    wanted["refused"] = wanted["wanted"] - wanted["served"]
    yield from differing(rounds, wanted, "its offers come to")
    # Other mechanisms than the paper's may let services offer again, or name what clients are worth.
    paper = rounds["round"].map({number: logs.conditions(number).paper for number in logs.numbers})
    over = "over the budget of {budget} (eq. 4)"
    yield from wrong(rounds, paper & (wanted["offered"] > rounds["budget"]), f"offers are {over}")
    yield from wrong(rounds, wanted["spent"] > rounds["budget"], f"what it spent is {over}")
    absent = rounds["status"].isin([Status.LEFT, Status.WAITING]) & (wanted["wanted"] > 0)
    yield from wrong(rounds, absent, "has the status {status}, but offers")


def _mean(values: "pd.Series[float]") -> float:
    return math.fsum(values) / len(values)


def _mean_money(values: "pd.Series[float]") -> float:
    return _logged(_mean(values / MICRO))


def _logged(value: float) -> float:
    """Return a number as it reads after it was written with six decimals."""
    return float(f"{value:.6f}")
