"""The rules of ``flmarket verify`` on time: which events there are, when, and in which order."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

from des.log_records import Kind, Outcome
from des.observation import Status
from scenarios.judging.evidence import Logs, Row
from scenarios.judging.slots import AWARDED, Moment, slot
from scenarios.judging.wording import at_client, place


def timeline(logs: Logs) -> Iterator[str]:
    """The events are those that rounds.csv and offers.csv imply: decisions, awards, jobs, payments and exits."""
    for number in dict.fromkeys(row["round"] for row in logs.rounds):
        if [row["event"] for row in logs.events_of.get((number, None), [])] != [Kind.REFRESH]:
            yield f"round {number}: does not begin with one refresh"
    for row in logs.rounds:
        key = row["round"], row["service"]
        offers = logs.offers_of.get(key, [])
        # Whether a dropped client had trained before it was cut off depends on how fast it is.
        dropped = {offer["client"] for offer in offers if offer["outcome"] is Outcome.DROPPED}
        expected = _expected(row, offers)
        found: dict[Kind, list[tuple[Any, ...]]] = defaultdict(list)
        for event in logs.events_of.get(key, []):
            kind = event["event"]
            if kind is Kind.TRAIN_END and event["client"] in dropped:
                continue
            amount = None if kind is Kind.BID else event["amount"]  # offers.csv does not hold all clients' bids
            time = event["sim_time"] if kind in (Kind.TRAIN_START, Kind.UPLOAD) else None
            found[kind].append((event["client"], event["core"], amount, time))
        if len(found[Kind.DECISION]) > 1 and not logs.conditions(row["round"]).paper:  # in several steps
            found[Kind.DECISION] = [(None, None, sum(amount or 0 for _, _, amount, _ in found[Kind.DECISION]), None)]
        for kind in Kind:
            if sorted(found[kind], key=repr) != sorted(expected.get(kind, []), key=repr):
                yield f"{place(row)}: its {kind} events are not those of rounds.csv and offers.csv"


def _expected(row: Row, offers: Sequence[Row]) -> dict[Kind, list[tuple[Any, ...]]]:
    """Return a service's events of a round by kind: client, core, amount, and the time where offers.csv has it."""
    if not row["status"].takes_part:
        return {}
    awarded = [offer for offer in offers if offer["outcome"] in AWARDED]
    served = [offer for offer in offers if offer["outcome"] is Outcome.SERVED]
    expected: dict[Kind, list[tuple[Any, ...]]] = {
        Kind.BID: [(None, None, None, None)],
        Kind.DECISION: [(None, None, row["offered"], None)],
        Kind.AWARD: [(offer["client"], offer["core"], offer["payment"], None) for offer in awarded],
        Kind.TRAIN_START: [(offer["client"], offer["core"], None, offer["start"]) for offer in awarded],
        Kind.TRAIN_END: [(offer["client"], offer["core"], None, None) for offer in served],
        Kind.UPLOAD: [(offer["client"], offer["core"], None, offer["end"]) for offer in served],
        Kind.PAY: [(offer["client"], None, offer["paid"], None) for offer in served],
    }
    if served:
        expected[Kind.AGGREGATE] = [(None, None, row["samples"], None)]
        expected[Kind.EVALUATE] = [(None, None, row["accuracy"], None)]
    if row["status"] is Status.REACHED:
        expected[Kind.EXIT] = [(None, None, row["accuracy"], None)]
    return expected


def clock(logs: Logs) -> Iterator[str]:
    """Each event, start and end is at the time and in the place that the scenario's durations give it; no gaps."""
    now = 0.0
    for row in logs.events:
        if row["sim_time"] < now:
            yield f"round {row['round']}: time runs backwards, from {now} to {row['sim_time']}"
        now = row["sim_time"]
    start = 0.0
    for number in logs.numbers:
        rows = logs.rows_of[number]
        expected = slot(logs, number, start)
        for at, offer in enumerate(logs.offers_in.get(number, [])):
            if offer["outcome"] in AWARDED:
                yield from _span(offer, expected.spans.get(at), rows[0]["sim_time"])
        found = [
            Moment(row["sim_time"], row["event"], row["service"], row["client"], row["core"])
            for row in logs.events_in.get(number, [])
        ]
        for n, (one, other) in enumerate(zip_longest(found, expected.moments), start=1):
            if one != other:
                yield f"round {number}: event {n} is {_words(one)}, but should be {_words(other)}"
                break
        for row in rows:
            if row["sim_time"] != expected.end:
                yield f"{place(row)}: the round ends at {row['sim_time']}, but its events say {expected.end}"
        start = rows[0]["sim_time"]  # as logged, so that one wrong time is named once


def _span(offer: Row, expected: tuple[float, float, bool] | None, end: float) -> Iterator[str]:
    """Yield what is wrong with an awarded offer's start, end and outcome."""
    start, done = offer["start"], offer["end"]
    if start is None or done is None or not start <= done <= end:
        yield f"{at_client(offer)}: works outside of the round"
    if expected is None:
        return  # the rules ``scenario`` and ``totals`` name an offer that cannot be
    if (start, done) != expected[:2]:
        wanted = f"its work takes from {expected[0]} to {expected[1]}"
        yield f"{at_client(offer)}: works from {start} to {done}, but {wanted}"
    if (offer["outcome"] is Outcome.SERVED) != expected[2]:
        arrives = "arrives" if expected[2] else "does not arrive"
        yield f"{at_client(offer)}: is {offer['outcome']}, but its update {arrives} in time"


def _words(moment: Moment | None) -> str:
    if moment is None:
        return "missing"
    places = {"of": moment.service, "client": moment.client, "core": moment.core}
    parts = [f"{name} {value}" for name, value in places.items() if value is not None]
    return " ".join((moment.event, *parts, f"at {moment.time}"))
