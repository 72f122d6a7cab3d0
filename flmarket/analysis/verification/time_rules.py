"""The rule of ``flmarket verify`` on time: the events of all rounds are worked out again from their offers.

It shares no code with ``des``. All jobs of a round start when it starts. What happens at the same time happens in the
order in which its causes happened; what has the same cause, in the order of services and offers.
"""

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pandas as pd

from des.log_records import Kind, Outcome
from des.money import MICRO
from des.observation import Status
from fl.arrays import AnyArray, IntArray
from flmarket.analysis.log_frames import written
from flmarket.analysis.verification.durations import durations
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.verification.findings import Finding, Rows, unequal
from scenarios.logs.columns import EVENTS

_ANY = np.inf  # an amount that other rules check
_ORDER = (
    "depth",  # 0 as the round opens, 1 a start, 2 an end of training, 3 what follows from that, 4 pay for all together
    "cause",  # the time of the event that led to it
    "depth_of_cause",
    "before",  # the time of the event that led to the cause
    "job",  # the place of the job that led to it
)
"""Columns that order events at the same time."""


def timeline(logs: Logs) -> Iterator[Finding]:
    """Each event, start and end is at the time and in the place that the scenario's durations give it; no gaps."""
    rounds, count = logs.rows["rounds"], len(logs.places)
    before = np.concatenate([[0], logs.all_rounds["sim_time"][::count]])  # as logged: one wrong time is named once
    starts = before[logs.numbers.start - 1 : logs.numbers.stop - 1]
    awarded = _jobs(logs, starts)
    jobs = awarded.where(awarded["outcome"] != Outcome.DECLINED)
    outcome = np.where(jobs["arrives"], Outcome.SERVED, Outcome.DROPPED)
    wanted = {"start": jobs["began"], "end": jobs["ended"], "outcome": outcome}
    yield from jobs.differing(wanted, "by the scenario's durations it should be")
    ends = starts + round((logs.scenario.timeline.slot or 0) * MICRO)
    np.maximum.at(ends, logs.order_of(jobs), jobs["ended"])
    yield from rounds.differing({"sim_time": np.repeat(ends, count)}, "its events end at")
    found = list(differing_events(logs, _events(logs, starts, awarded, jobs)))
    # Where the mechanism is not here, its services may also pay together.
    if found and any(differing_events(logs, _events(logs, starts, awarded, jobs, together=True))):
        yield from found
    decisions = _decisions(logs)
    lines, there = logs.places_of(decisions), logs.takes_part
    sums, count_of_decisions = (np.bincount(lines, of, len(rounds))[there] for of in (decisions["amount"], None))
    offers = logs.rows["offers"]
    hired = offers.where(logs.hired.rows)  # decided in an earlier round
    sums += np.bincount(logs.places_of(hired), hired["payment"], len(rounds))[there]
    wanted = {"offered": np.where(count_of_decisions > 0, sums, np.nan)}
    yield from rounds.where(there).differing(wanted, "its decisions come to")


def _decisions(logs: Logs) -> Rows:
    events = logs.rows["events"]
    return events.where((events["event"] == Kind.DECISION) & (events["m"] >= 0))


def _jobs(logs: Logs, starts: IntArray) -> Rows:
    """Return the awarded offers, with their line in rounds.csv, their times, and the order in which they end."""
    offers = logs.answered.having(line_of_round=logs.places_of(logs.answered))
    offers = offers.having(data_size=logs.held_sizes)
    jobs = offers.where((offers["outcome"] != Outcome.OUTBID) & logs.takes_part[offers["line_of_round"]])
    compute, upload, limit = durations(logs, jobs)
    began, cut = starts[logs.order_of(jobs)], compute > limit
    trained = began + np.minimum(compute, limit)
    sends = np.where(cut, 0, np.minimum(upload, limit - np.minimum(compute, limit)))
    return jobs.having(
        began=began,
        trained=trained,
        cut=cut,
        ended=trained + sends,
        arrives=compute + upload <= limit,
        depth=np.where(cut, 2, 3),
        cause=np.where(cut, 0.0, trained),
        depth_of_cause=np.where(cut, 1, 2),
        before=np.zeros(len(jobs)),
        job=np.arange(len(jobs)),
    )


def _services(logs: Logs, starts: IntArray, jobs: Rows) -> Rows:
    """Return rounds.csv, with the time at which each service's round opens and closes, and the order of closing.

    It closes after its last job, and at once if it has none.
    """
    rounds = logs.rows["rounds"]
    opens, ordered = starts[logs.order_of(rounds)], _sorted(jobs, "line_of_round", "ended")
    last = ordered.where(np.diff(ordered["line_of_round"], append=-1) != 0)
    closing: dict[str, Any] = {
        "closes": last["ended"],
        "depth": 3.0,
        "cause": last["ended"],
        "depth_of_cause": last["depth"],
    }
    columns = {"closes": opens.copy(), **{name: np.zeros(len(rounds)) for name in _ORDER}}
    for name, values in {**closing, "before": last["cause"], "job": last["job"]}.items():
        columns[name][last["line_of_round"]] = values
    return rounds.having(opens=opens, **columns)


def _paying(logs: Logs, services: Rows, *, together: bool) -> Rows:
    """Return services as they pay: after all have closed, where the mechanism settles together, or is not here."""
    last, order = np.zeros(len(logs.numbers), dtype=np.int64), logs.order_of(services)
    np.maximum.at(last, order, services["closes"])
    late = logs.by_round(services, lambda now: now.may("settles_together", unknown=together))
    zero = np.zeros(len(order))
    columns = {"closes": last[order], "depth": zero + 4, "job": services["m"], **dict.fromkeys(_ORDER[1:4], zero)}
    return services.having(**{name: np.where(late, values, services[name]) for name, values in columns.items()})


def _events(logs: Logs, starts: IntArray, awarded: Rows, jobs: Rows, *, together: bool = False) -> Rows:
    """Return the events that the logs' offers and decisions lead to, in order."""
    services = _services(logs, starts, jobs)
    paying = _paying(logs, services, together=together)
    there, served, lines = services.where(logs.takes_part), jobs.where(jobs["arrives"]), "line_of_round"
    trained, trains_fully = services.where(np.unique(served[lines])), jobs.where(~jobs["cut"])
    paid = served.having(**{name: paying[name][served[lines]] for name in ("closes", *_ORDER)})
    leaving = paying.where(np.isin(paying["status"], [status for status in Status if status.leaves]))
    ended, clients, fees = np.array(logs.hired.fees, dtype=np.int64).reshape(-1, 3).T
    cancelled = paying.where(ended).having(client=clients)
    pieces = [
        _piece(Kind.REFRESH, services.where(slice(None, None, len(logs.places))), "opens", depth=0, about=()),
        _piece(Kind.BID, there, "opens", _ANY, depth=0),
        _piece(Kind.DECISION, there, "opens", _ANY, depth=0),
        _piece(Kind.DECISION, services.where(_offered_again(logs)), "opens", _ANY, depth=0),
        _piece(Kind.AWARD, awarded, "began", awarded["payment"], depth=0),
        _piece(Kind.TRAIN_START, jobs, "began", depth=1),
        _piece(Kind.TRAIN_END, trains_fully, "trained", depth=2),
        _piece(Kind.UPLOAD, served, "ended"),
        _piece(Kind.AGGREGATE, trained, "closes", trained["samples"]),
        _piece(Kind.EVALUATE, trained, "closes", trained["accuracy"]),
        _piece(Kind.PAY, paid, "closes", paid["paid"], about=("service", "client")),
        _piece(Kind.EXIT, leaving, "closes", leaving["accuracy"]),
        _piece(Kind.CANCEL, cancelled, "closes", fees, about=("service", "client")),
    ]
    columns = {name: np.concatenate([piece[name] for piece in pieces]) for name in (*EVENTS.names, *_ORDER)}
    return _sorted(Rows("events", columns), "round", "sim_time")


def _sorted(rows: Rows, *first: str) -> Rows:
    """Return rows by some columns, then by ``_ORDER``."""
    return rows.where(np.lexsort([rows[name] for name in (*first, *_ORDER)][::-1]))


def _piece(
    kind: Kind,
    rows: Rows,  # one for each event
    time: str,  # the column that says when it happens
    amount: AnyArray | float = np.nan,
    *,
    depth: int | None = None,  # None where the rows have an order of their own
    about: tuple[str, ...] = ("service", "client", "core"),
) -> dict[str, AnyArray]:
    zeros = np.zeros(len(rows))
    piece = {"round": rows["round"], "sim_time": rows[time], "event": np.full(len(rows), kind, dtype=object)}
    piece |= dict.fromkeys(("service", "client", "core"), zeros + np.nan)
    piece |= {name: rows[name] for name in about if name in rows.columns}
    piece["amount"] = zeros + amount
    if depth is None:
        return piece | {name: rows[name] for name in _ORDER}
    return piece | dict.fromkeys(_ORDER, zeros) | {"depth": zeros + depth}


def _offered_again(logs: Logs) -> IntArray:
    """Return the lines of rounds.csv of the services that decided once more in a round, where a mechanism lets them.

    The rule ``cores`` checks that these are the ones refused.
    """
    decisions = _decisions(logs)
    number = decisions["round"]
    first = np.bincount(logs.rows["rounds"]["round"][logs.takes_part], minlength=logs.numbers.stop)
    again = np.arange(len(number)) - np.searchsorted(number, number) >= first[number]
    once = logs.by_round(decisions, lambda now: now.paper and not now.scenario.market.sequential)
    return logs.places_of(decisions)[again & ~once]


def differing_events(logs: Logs, wanted: Rows) -> Iterator[Finding]:
    """Yield the first event that is not the one wanted."""
    events = logs.rows["events"]
    count = min(len(events), len(wanted))
    other = np.zeros(count, dtype=np.bool_)
    for name in EVENTS.names:
        right = wanted[name][:count]
        other |= unequal(events[name][:count], right) & (right != _ANY)
    at = int(other.argmax()) if other.any() else count
    if at < max(len(events), len(wanted)):
        is_, should = (_words(rows.where(slice(at, at + 1))) for rows in (events, wanted))
        line = cast("pd.RangeIndex", logs.events.index).start + at + 2
        yield Finding(f"is {is_}, but should be {should}", "events", line, "events")


def _words(events: Rows) -> str:
    """Return an event, or that there is none, in words."""
    if not len(events):
        return "missing"
    frame = pd.DataFrame({name: events[name] for name in EVENTS.names}).replace(_ANY, np.nan)
    [texts] = written(frame, "events").to_dict("records")
    words = {
        "service": "of",
        "client": "client",
        "core": "core",
        "amount": "with",
        "sim_time": "at",
        "round": "in round",
    }
    return " ".join([texts["event"], *(f"{word} {texts[name]}" for name, word in words.items() if texts[name])])
