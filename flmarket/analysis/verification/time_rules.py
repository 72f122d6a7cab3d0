"""The rule of ``flmarket verify`` on time: the events of all rounds are worked out again from their offers.

It shares no code with ``des``. All jobs of a round start when it starts. What happens at the same time happens in the
order in which its causes happened.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from des.log_records import Kind, Outcome
from des.observation import Status
from fl.arrays import AnyArray, BoolArray, FloatArray, IntArray
from flmarket.analysis.tables import value_text
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.verification.findings import Finding, Rows
from scenarios.logs.columns import AMOUNTS, EVENTS

_ANY = np.inf  # an amount that other rules check


class _Jobs(NamedTuple):
    """The awarded offers, in the order of offers.csv: arrays [jobs]."""

    offer: IntArray  # its place in offers.csv
    line: IntArray  # the place in rounds.csv of its round and service
    trained: FloatArray  # when its training ends, or is cut off, simulated seconds
    cut: BoolArray  # whether its training is cut off
    end: FloatArray  # when its update arrives, or it is cut off
    arrives: BoolArray


class _Order(NamedTuple):
    """The order of events at the same time: how far they are from the start of the round, and when their causes were.

    Arrays [events]; what they leave open is decided by the order of services and offers.
    """

    depth: IntArray  # 0 as the round opens, 1 a start, 2 an end of training, 3 what follows from that
    cause: FloatArray  # when the event happened that led to it
    depth_of_cause: IntArray
    before: FloatArray  # when the event happened that led to the cause
    job: IntArray

    @classmethod
    def of(cls, count: int, depth: int) -> "_Order":
        no_time, no_number = np.zeros(count), np.zeros(count, dtype=np.int64)
        return cls(np.full(count, depth), no_time, no_number, no_time.copy(), no_number.copy())

    def where(self, which: AnyArray) -> "_Order":
        return _Order(*(values[which] for values in self))


def timeline(logs: Logs) -> Iterator[Finding]:
    """Each event, start and end is at the time and in the place that the scenario's durations give it; no gaps."""
    rounds, offers = logs.rows["rounds"], logs.rows["offers"]
    # As logged, so that one wrong time is named once.
    starts = np.concatenate([[0.0], rounds["sim_time"][:: len(logs.places)][:-1]])
    jobs = _jobs(logs, starts)
    start, end = np.full((2, len(offers)), np.nan)
    start[jobs.offer], end[jobs.offer] = starts[rounds["round"][jobs.line] - 1], jobs.end
    outcome = np.full(len(offers), Outcome.OUTBID, dtype=object)
    outcome[jobs.offer] = np.where(jobs.arrives, Outcome.SERVED, Outcome.DROPPED)
    wanted = {"start": start, "end": end, "outcome": outcome}
    yield from offers.differing(wanted, "by the scenario's durations it should be")
    ends = starts.copy()
    np.maximum.at(ends, rounds["round"][jobs.line] - 1, jobs.end)
    if logs.scenario.timeline.slot is not None:
        ends = np.maximum(ends, starts + logs.scenario.timeline.slot)
    yield from rounds.differing({"sim_time": np.repeat(ends, len(logs.places))}, "its events end at")
    yield from _compared(logs.rows["events"], _expected(logs, starts, jobs))
    yield from _decided(logs)


def _decided(logs: Logs) -> Iterator[Finding]:
    events, rounds = logs.rows["events"], logs.rows["rounds"]
    service = logs.services_of(events)
    decisions = events.has("event", Kind.DECISION) & (service >= 0)
    lines = ((events["round"] - 1) * len(logs.places) + service)[decisions]
    made = np.bincount(lines, minlength=len(rounds)) > 0
    sums = np.bincount(lines, events["amount"][decisions], minlength=len(rounds))
    there = np.flatnonzero(logs.takes_part)
    wanted = {"offered": np.where(made, sums, np.nan)[there]}
    yield from rounds.where(there).differing(wanted, "its decisions come to")


def _jobs(logs: Logs, starts: FloatArray) -> _Jobs:
    offers, clock = logs.rows["offers"], logs.scenario.timeline
    awarded = np.flatnonzero(~offers.has("outcome", Outcome.OUTBID) & logs.takes_part[logs.lines_of_offers])
    service, client = (it[awarded] for it in logs.offered_to)
    number = offers["round"][awarded]
    size = (offers if logs.clients is None else logs.held)["data_size"][awarded]  # clients may report other data
    epochs = np.array(list(logs.epochs.values()))[service]
    compute = size * epochs * clock.seconds_per_sample / logs.population.speed[client]
    limit = np.full(len(awarded), min(it for it in (clock.slot, clock.deadline, np.inf) if it is not None))
    if logs.scenario.clients.departure_rate:
        pairs = zip(number.tolist(), client.tolist(), strict=True)
        part = np.array([logs.population.departs(*pair) for pair in pairs], dtype=np.float64)  # NaN for one that stays
        limit = np.fmin(limit, part * (compute + clock.upload_seconds))
    cut = compute > limit
    trained = starts[number - 1] + np.minimum(compute, limit)
    end = trained + np.where(cut, 0.0, np.minimum(clock.upload_seconds, limit - np.minimum(compute, limit)))
    arrives = compute + clock.upload_seconds <= limit
    return _Jobs(awarded, logs.lines_of_offers[awarded], trained, cut, end, arrives)


def _expected(logs: Logs, starts: FloatArray, jobs: _Jobs) -> Rows:
    """Return the events that the logs' offers and decisions lead to, in order."""
    rounds, offers = logs.rows["rounds"], logs.rows["offers"]
    opens = starts[rounds["round"] - 1]
    closes, closing = _closing(opens, jobs)
    pieces: list[tuple[dict[str, AnyArray], _Order]] = []

    def add(kind: Kind, number: IntArray, time: FloatArray, order: _Order, **values: AnyArray | float) -> None:
        nothing = {"service": np.nan, "client": np.nan, "core": np.nan, "amount": np.nan}
        piece = {"round": number, "sim_time": time, "event": kind, **nothing, **values}
        types = {"event": object, "service": object}
        filled = {name: np.full(len(number), value, dtype=types.get(name)) for name, value in piece.items()}
        pieces.append((filled, order))

    def of_services(kind: Kind, lines: IntArray, amount: AnyArray | float, time: FloatArray, order: _Order) -> None:
        number, service = rounds["round"][lines], rounds["service"][lines]
        add(kind, number, time[lines], order.where(lines), service=service, amount=amount)

    def of_jobs(
        kind: Kind, which: AnyArray, time: FloatArray, order: _Order, amount: AnyArray | float = np.nan
    ) -> None:
        made = offers.where(jobs.offer[which])
        place = {name: made[name] for name in ("service", "client", "core")}
        add(kind, made["round"], time[which], order.where(which), **place, amount=amount)

    there, all_jobs = np.flatnonzero(logs.takes_part), np.arange(len(jobs.offer))
    first = _Order.of(len(rounds), 0)
    add(Kind.REFRESH, np.array(logs.numbers), starts, _Order.of(len(starts), 0))
    for kind in (Kind.BID, Kind.DECISION):
        of_services(kind, there, _ANY, opens, first)
    of_services(Kind.DECISION, _offered_again(logs), _ANY, opens, first)
    start = opens[jobs.line]
    of_jobs(Kind.AWARD, all_jobs, start, _Order.of(len(start), 0), offers["payment"][jobs.offer])
    of_jobs(Kind.TRAIN_START, all_jobs, start, _Order.of(len(start), 1))
    of_jobs(Kind.TRAIN_END, np.flatnonzero(~jobs.cut), jobs.trained, _Order.of(len(start), 2))
    served = np.flatnonzero(jobs.arrives)
    of_jobs(Kind.UPLOAD, served, jobs.end, _order_of_ends(jobs))
    lines = np.unique(jobs.line[served])
    of_services(Kind.AGGREGATE, lines, rounds["samples"][lines], closes, closing)
    of_services(Kind.EVALUATE, lines, rounds["accuracy"][lines], closes, closing)
    paid = offers.where(jobs.offer[served])
    of_line = jobs.line[served]
    add(
        Kind.PAY, paid["round"], closes[of_line], closing.where(of_line),
        service=paid["service"], client=paid["client"], amount=paid["paid"],
    )  # fmt: skip
    left = np.flatnonzero(rounds.has("status", Status.REACHED))
    of_services(Kind.EXIT, left, rounds["accuracy"][left], closes, closing)
    columns = {name: np.concatenate([piece[name] for piece, _ in pieces]) for name in EVENTS.names}
    order = _Order(*map(np.concatenate, zip(*(order for _, order in pieces), strict=True)))
    sequence = np.lexsort((*reversed(order), columns["sim_time"], columns["round"]))
    return Rows("events", columns, np.arange(2, len(sequence) + 2)).where(sequence)


def _offered_again(logs: Logs) -> IntArray:
    """Return the lines of rounds.csv of the services that decided once more in a round, where a mechanism lets them.

    The rule ``cores`` checks that these are the ones refused.
    """
    events = logs.rows["events"]
    other = ~logs.by_round(events, lambda now: now.paper)
    decisions = events.where(other & events.has("event", Kind.DECISION) & (logs.services_of(events) >= 0))
    place = np.arange(len(decisions)) - np.searchsorted(decisions["round"], decisions["round"])
    of_round = np.bincount(logs.rows["rounds"]["round"][logs.takes_part], minlength=len(logs.numbers) + 1)
    again = decisions.where(place >= of_round[decisions["round"]])
    return (again["round"] - 1) * len(logs.places) + logs.services_of(again)


def _order_of_ends(jobs: _Jobs) -> _Order:
    """Return the order of the ends of jobs: one whose training is cut off ends there."""
    job, no_time = np.arange(len(jobs.offer)), np.zeros(len(jobs.offer))
    depth = np.where(jobs.cut, 2, 3)
    return _Order(depth, np.where(jobs.cut, 0.0, jobs.trained), depth - 1, no_time, job)


def _closing(opens: FloatArray, jobs: _Jobs) -> tuple[FloatArray, _Order]:
    """Return when each service's round closes, and in which order: after its last job, or at once if it has none."""
    ends = _order_of_ends(jobs)
    in_order = np.lexsort((*reversed(ends), jobs.end, jobs.line))
    last = in_order[np.flatnonzero(np.diff(jobs.line[in_order], append=-1))]
    closes, order = opens.copy(), _Order.of(len(opens), 0)
    lines = jobs.line[last]
    closes[lines] = jobs.end[last]
    caused = _Order(np.full(len(last), 3), jobs.end[last], ends.depth[last], ends.cause[last], last)
    for values, new in zip(order, caused, strict=True):
        values[lines] = new
    return closes, order


def _compared(events: Rows, wanted: Rows) -> Iterator[Finding]:
    """Yield the first event that is not the one wanted."""
    count = min(len(events), len(wanted))
    other = np.zeros(count, dtype=np.bool_)
    for name in EVENTS.names:
        found, right = events[name][:count], wanted[name][:count]
        other |= (found != right) & ~((found != found) & (right != right)) & (right != _ANY)
    places = np.flatnonzero(other).tolist()
    if places or len(events) != len(wanted):
        at = places[0] if places else count
        what = f"is {_words(events, at)}, but should be {_words(wanted, at)}"
        yield Finding("events.csv", at + 2, "", what)


def _words(events: Rows, at: int) -> str:
    if at >= len(events):
        return "missing"
    event, amount = events["event"][at], events["amount"][at]
    parts = [event]
    if (service := events["service"][at]) == service:
        parts.append(f"of {service}")
    parts += [f"{name} {events[name][at]:.0f}" for name in ("client", "core") if not np.isnan(events[name][at])]
    if np.isfinite(amount) and event in AMOUNTS:
        parts.append(f"with {value_text(AMOUNTS[Kind(event)], amount)}")
    return " ".join((*parts, f"at {events['sim_time'][at]} in round {events['round'][at]}"))
