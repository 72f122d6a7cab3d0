"""The rule of ``flmarket verify`` on time: the events of all rounds are worked out again from their offers.

It shares no code with ``des``. All jobs of a round start when it starts. What happens at the same time happens in the
order in which its causes happened; what has the same cause, in the order of services and offers.
"""

from collections.abc import Iterator

import numpy as np

from des.log_records import Kind, Outcome
from des.observation import Status
from fl.arrays import AnyArray, FloatArray, IntArray
from flmarket.analysis.log_frames import value_text
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.verification.findings import Finding, Rows, unequal
from scenarios.logs.columns import AMOUNTS, EVENTS

_ANY = np.inf  # an amount that other rules check
_ORDER = (
    "depth",  # 0 as the round opens, 1 a start, 2 an end of training, 3 what follows from that
    "cause",  # the time of the event that led to it
    "depth_of_cause",
    "before",  # the time of the event that led to the cause
    "job",  # the place of the job that led to it
)
"""Columns that order events at the same time."""


def timeline(logs: Logs) -> Iterator[Finding]:
    """Each event, start and end is at the time and in the place that the scenario's durations give it; no gaps."""
    rounds, offers, count = logs.rows["rounds"], logs.rows["offers"], len(logs.places)
    starts = np.concatenate([[0.0], rounds["sim_time"][::count][:-1]])  # as logged: one wrong time is named once
    jobs = _jobs(logs, starts)
    outcome = np.where(jobs["arrives"], Outcome.SERVED, Outcome.DROPPED)
    wanted = {"start": jobs["start"], "end": jobs["end"], "outcome": outcome}
    yield from offers.where(jobs["place"]).differing(wanted, "by the scenario's durations it should be")
    ends = starts.copy()
    np.maximum.at(ends, jobs["round"] - 1, jobs["end"])
    if logs.scenario.timeline.slot is not None:
        ends = np.maximum(ends, starts + logs.scenario.timeline.slot)
    yield from rounds.differing({"sim_time": np.repeat(ends, count)}, "its events end at")
    yield from _compared(logs.rows["events"], _events(logs, starts, jobs))
    decisions = _decisions(logs)
    sums, made = (np.bincount(decisions["line"], of, len(rounds)) for of in (decisions["amount"], None))
    wanted = {"offered": np.where(made > 0, sums, np.nan)[logs.takes_part]}
    yield from rounds.where(logs.takes_part).differing(wanted, "its decisions come to")


def _decisions(logs: Logs) -> Rows:
    """Return the decisions of services in events.csv, with the place of their line in rounds.csv."""
    events = logs.rows["events"].having(service=logs.services_of(logs.rows["events"]))
    decisions = events.where(events.has("event", Kind.DECISION) & (events["service"] >= 0))
    return decisions.having(line=(decisions["round"] - 1) * len(logs.places) + decisions["service"])


def _jobs(logs: Logs, starts: FloatArray) -> Rows:
    """Return the awarded offers, with their place in the tables, their times, and the order in which they end."""
    offers, clock = logs.rows["offers"], logs.scenario.timeline
    place = np.flatnonzero(~offers.has("outcome", Outcome.OUTBID) & logs.takes_part[logs.lines_of_offers])
    offers, (service, client) = offers.where(place), (it[place] for it in logs.offered_to)
    size = (
        offers["data_size"] if logs.clients is None else logs.drawn.offers["held_data_size"][place]
    )  # others may be reported
    epochs = np.array([logs.scenario.training_for(it.dataset).local_epochs for it in logs.scenario.services])[service]
    compute = size * epochs * clock.seconds_per_sample / logs.population.speed[client]
    limit = np.full(len(place), min(it for it in (clock.slot, clock.deadline, np.inf) if it is not None))
    if logs.scenario.clients.departure_rate:
        pairs = zip(offers["round"].tolist(), client.tolist(), strict=True)
        part = np.array([logs.population.departs(*pair) for pair in pairs], dtype=np.float64)  # NaN for one that stays
        limit = np.fmin(limit, part * (compute + clock.upload_seconds))
    start, cut = starts[offers["round"] - 1], compute > limit
    trained = start + np.minimum(compute, limit)
    upload = np.where(cut, 0.0, np.minimum(clock.upload_seconds, limit - np.minimum(compute, limit)))
    return offers.having(
        place=place,
        line=logs.lines_of_offers[place],
        start=start,
        trained=trained,
        cut=cut,
        end=trained + upload,
        arrives=compute + clock.upload_seconds <= limit,
        depth=np.where(cut, 2, 3),
        cause=np.where(cut, 0.0, trained),
        depth_of_cause=np.where(cut, 1, 2),
        before=np.zeros(len(place)),
        job=np.arange(len(place)),
    )


def _services(logs: Logs, starts: FloatArray, jobs: Rows) -> Rows:
    """Return rounds.csv, with the time at which each service's round opens and closes, and the order of closing.

    It closes after its last job, and at once if it has none.
    """
    rounds = logs.rows["rounds"]
    opens = starts[rounds["round"] - 1]
    in_order = np.lexsort((*(jobs[name] for name in reversed(_ORDER)), jobs["end"], jobs["line"]))
    last = jobs.where(in_order[np.flatnonzero(np.diff(jobs["line"][in_order], append=-1))])
    order = {"depth": 3, "cause": last["end"], "depth_of_cause": last["depth"], "before": last["cause"]}
    closing = {"closes": opens.copy(), **{name: np.zeros(len(rounds)) for name in _ORDER}}
    for name, values in {"closes": last["end"], **order, "job": last["job"]}.items():
        closing[name][last["line"]] = values
    return rounds.having(opens=opens, **closing)


def _events(logs: Logs, starts: FloatArray, jobs: Rows) -> Rows:
    """Return the events that the logs' offers and decisions lead to, in order."""
    services = _services(logs, starts, jobs)
    there, served = services.where(logs.takes_part), jobs.where(jobs["arrives"])
    trained, trains_fully = services.where(np.unique(served["line"])), jobs.where(~jobs["cut"])
    paid = served.having(**{name: services[name][served["line"]] for name in ("closes", *_ORDER)})
    reached = there.where(there.has("status", Status.REACHED))
    pieces = [
        _piece(Kind.REFRESH, services.where(slice(None, None, len(logs.places))), "opens", depth=0, about=()),
        _piece(Kind.BID, there, "opens", _ANY, depth=0),
        _piece(Kind.DECISION, there, "opens", _ANY, depth=0),
        _piece(Kind.DECISION, services.where(_offered_again(logs)), "opens", _ANY, depth=0),
        _piece(Kind.AWARD, jobs, "start", jobs["payment"], depth=0),
        _piece(Kind.TRAIN_START, jobs, "start", depth=1),
        _piece(Kind.TRAIN_END, trains_fully, "trained", depth=2),
        _piece(Kind.UPLOAD, served, "end"),
        _piece(Kind.AGGREGATE, trained, "closes", trained["samples"]),
        _piece(Kind.EVALUATE, trained, "closes", trained["accuracy"]),
        _piece(Kind.PAY, paid, "closes", paid["paid"], about=("service", "client")),
        _piece(Kind.EXIT, reached, "closes", reached["accuracy"]),
    ]
    columns = {name: np.concatenate([piece[name] for piece in pieces]) for name in (*EVENTS.names, *_ORDER)}
    order = np.lexsort([columns[name] for name in (*reversed(_ORDER), "sim_time", "round")])
    return Rows("events", columns, np.arange(2, len(order) + 2)).where(order)


def _piece(
    kind: Kind,
    rows: Rows,  # one for each event
    time: str,  # the column that says when it happens
    amount: AnyArray | float = np.nan,
    *,
    depth: int | None = None,  # None where the rows have an order of their own
    about: tuple[str, ...] = ("service", "client", "core"),
) -> dict[str, AnyArray]:
    """Return events of one kind, by column."""
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
    first = np.bincount(logs.rows["rounds"]["round"][logs.takes_part], minlength=len(logs.numbers) + 1)
    again = np.arange(len(number)) - np.searchsorted(number, number) >= first[number]
    return decisions["line"][again & ~logs.by_round(decisions, lambda now: now.paper)]


def _compared(events: Rows, wanted: Rows) -> Iterator[Finding]:
    """Yield the first event that is not the one wanted."""
    count = min(len(events), len(wanted))
    other = np.zeros(count, dtype=np.bool_)
    for name in EVENTS.names:
        right = wanted[name][:count]
        other |= unequal(events[name][:count], right) & (right != _ANY)
    places = np.flatnonzero(other).tolist()
    if places or len(events) != len(wanted):
        at = places[0] if places else count
        what = f"is {_words(events, at)}, but should be {_words(wanted, at)}"
        yield Finding("events.csv", at + 2, what)


def _words(events: Rows, at: int) -> str:
    if at >= len(events):
        return "missing"
    event, service, amount = (events[name][at] for name in ("event", "service", "amount"))
    parts = [event, *([f"of {service}"] if service == service else [])]
    parts += [f"{name} {events[name][at]:.0f}" for name in ("client", "core") if not np.isnan(events[name][at])]
    if np.isfinite(amount) and event in AMOUNTS:
        parts.append(f"with {value_text(AMOUNTS[Kind(event)], amount)}")
    return " ".join((*parts, f"at {events['sim_time'][at]} in round {events['round'][at]}"))
