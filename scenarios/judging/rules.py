"""What must hold in every run's logs: constraints, sums, and that the three tables agree with each other.

Written against the paper and the logs alone: no rule shares code with the market, so a defect there cannot hide here.
Each column of the logs names the rule that checks it (``scenarios.logs.columns``); the first sentence of a rule's
docstring stands in docs/logs.md.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from des.mechanisms import DEFAULT
from des.money import MICRO, Micro
from des.money import text as money
from des.records import Kind, Outcome, Status
from scenarios.file.schema import Service
from scenarios.judging.evidence import Logs, Row

_AWARDED = (Outcome.SERVED, Outcome.DROPPED)
_SIX_DECIMALS = 5e-7
"""Half a unit of the last decimal of accuracies and of mean money."""
_CLOSE = 1e-9
"""What two orders of summing floating-point numbers may differ by."""


def shape(logs: Logs) -> Iterator[str]:
    """Each round from 1 has one row for each service, in the scenario's order, until the run ends."""
    names = [service.name for service in logs.scenario.services]
    found = [(row["round"], row["service"]) for row in logs.rounds]
    count = len(logs.rounds) // len(names)
    if not count:
        yield "rounds.csv has no round"
    if found != [(n, name) for n in range(1, count + 1) for name in names]:
        yield "rounds.csv does not have one row for each round and service, in order"
    last = logs.rounds[-len(names) :]
    if count != logs.scenario.rounds and any(row["status"] is Status.TRAINING for row in last):
        yield f"the run ends after round {count} of {logs.scenario.rounds}, but not all services have left"
    known = set(found)
    for place in sorted({*logs.offers_of} - known) + sorted({key for key in logs.events_of if key[1]} - known):
        yield f"round {place[0]}: {place[1]}: has offers or events, but no row in rounds.csv"


def scenario(logs: Logs) -> Iterator[str]:
    """Data sets, policies, targets, budgets, clients and data sizes are the scenario's; no client is wanted offline."""
    services = {service.name: service for service in logs.scenario.services}
    for row in logs.rounds:
        service = services.get(row["service"])
        if service is None:
            yield f"{_place(row)}: unknown service"
            continue
        budget = logs.conditions(row["round"]).budgets[service.name]
        if abs(row["budget"] - budget * MICRO) > 0.5:
            yield f"{_place(row)}: the budget {money(row['budget'])} is not the scenario's {budget}"
        if abs(row["target_accuracy"] - service.target_accuracy) > _SIX_DECIMALS + _CLOSE:
            yield f"{_place(row)}: the target {row['target_accuracy']} is not the scenario's {service.target_accuracy}"
        for key, wanted in (("dataset", service.dataset), ("policy", service.policy)):
            if row[key] != wanted:
                yield f"{_place(row)}: the {key} {row[key]!r} is not the scenario's {wanted!r}"
    clients = logs.scenario.clients
    for row in logs.offers:
        if row["data_size"] not in clients.data_size:
            yield f"{_client(row)}: a data size of {row['data_size']} is not in the scenario"
        if not 0 <= row["client"] < clients.count:
            yield f"{_client(row)}: unknown client; clients are 0 to {clients.count - 1}"
        if row["client"] in logs.conditions(row["round"]).offline:
            yield f"{_client(row)}: is offline, but is wanted"


def bids(logs: Logs) -> Iterator[str]:
    """Each bid is the cost of the client's data, which follows from their size and EMD."""
    cost = logs.scenario.clients.cost
    for row in logs.offers:
        asked = cost.per_sample * row["data_size"] - cost.per_emd * row["emd"]
        if abs(row["bid"] - asked * MICRO) > 0.5 + 1e-3:
            yield f"{_client(row)}: the bid {money(row['bid'])} is not the cost of its data, {asked:.6f}"


def payments(logs: Logs) -> Iterator[str]:
    """Payments and prices are at least the bid (eq. 5), prices at most the payment; only served clients are paid."""
    paper = logs.scenario.market.mechanism == DEFAULT
    for row in logs.offers:
        bid, payment, paid = row["bid"], row["payment"], row["paid"]
        if bid < 0 or payment < bid:
            yield f"{_client(row)}: the payment {money(payment)} is below the bid {money(bid)} (eq. 5)"
        if (paid is not None) != (row["outcome"] is Outcome.SERVED):
            yield f"{_client(row)}: was {row['outcome']}, but was {'not ' if paid is None else ''}paid"
        elif paid is not None and paid < bid:
            yield f"{_client(row)}: was paid {money(paid)}, below its bid {money(bid)} (eq. 5)"
        elif paid is not None and (paid > payment or (paper and paid != payment)):
            yield f"{_client(row)}: was paid {money(paid)}, but the payment offered is {money(payment)}"


def cores(logs: Logs) -> Iterator[str]:
    """A client serves at most K services, one on each core (eq. 2): by the paper's mechanism, the highest payments."""
    paper = logs.scenario.market.mechanism == DEFAULT
    of_client: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in logs.offers:
        of_client[row["round"], row["client"]].append(row)
    for (number, client), rows in of_client.items():
        where = f"round {number}: client {client}"
        available = logs.conditions(number).cores
        won = [row for row in rows if row["outcome"] in _AWARDED]
        lost = [row for row in rows if row["outcome"] not in _AWARDED]
        if len({row["service"] for row in rows}) < len(rows):
            yield f"{where}: a service wants it twice"
        if len(won) > available:
            yield f"{where}: serves {len(won)} services with {available} cores (eq. 2)"
        if paper and lost and len(won) < available:
            yield f"{where}: refuses an offer with a core free"
        if paper and won and lost and min(row["payment"] for row in won) < max(row["payment"] for row in lost):
            yield f"{where}: refuses a higher payment than one that it takes"
        if any(row["core"] is None or not 0 <= row["core"] < available for row in won) or len(
            {row["core"] for row in won}
        ) < len(won):
            yield f"{where}: its cores are not used once each"
        for row in lost:
            if not row["core"] is row["start"] is row["end"] is None:
                yield f"{where}: works for {row['service']}, which was outbid"


def progress(logs: Logs) -> Iterator[str]:
    """A service trains until it meets its target, then leaves and keeps its accuracy; the reward is Omega^accuracy."""
    for service in logs.scenario.services:
        before: Row | None = None
        for row in logs.rounds:
            if row["service"] == service.name:
                for problem in _step(service, before, row):
                    yield f"{_place(row)}: {problem}"
                before = row


def _step(service: Service, before: Row | None, row: Row) -> Iterator[str]:
    accuracy, status, target = row["accuracy"], row["status"], service.target_accuracy
    gone = before is not None and before["status"] is not Status.TRAINING
    # Logged accuracies have six decimals, and the target may have more.
    if gone and (status is not Status.LEFT or before is None or accuracy != before["accuracy"]):
        yield "has left, but does not keep its status and accuracy"
    if not gone and status is Status.LEFT:
        yield "has left without meeting its target"
    if status is Status.REACHED and accuracy < target - _SIX_DECIMALS:
        yield f"leaves at an accuracy of {accuracy:.6f}, below its target of {target}"
    if status is Status.TRAINING and accuracy > target + _SIX_DECIMALS:
        yield f"stays at an accuracy of {accuracy:.6f}, above its target of {target}"
    reward = service.reward_base ** min(accuracy, target)
    # Six decimals of accuracy leave the reward uncertain by ln(Omega) / 2e6 of itself.
    if abs(row["reward"] - reward) > 1e-5 * reward:
        yield f"the reward {row['reward']} is not {service.reward_base}^accuracy = {reward}"


def totals(logs: Logs) -> Iterator[str]:
    """Each row of rounds.csv says what the service's offers come to, and they are within its budget (eq. 4)."""
    for row in logs.rounds:
        offers = logs.offers_of.get((row["round"], row["service"]), [])
        served = [offer for offer in offers if offer["outcome"] is Outcome.SERVED]
        offered: Micro = sum(offer["payment"] for offer in offers)
        if offered > row["budget"]:
            yield f"{_place(row)}: offers of {money(offered)} are over the budget of {money(row['budget'])} (eq. 4)"
        if row["status"] is Status.LEFT and offers:
            yield f"{_place(row)}: has left, but makes offers"
        spent: Micro = sum(offer["paid"] or 0 for offer in served)
        for key, value in (("offered", offered), ("spent", spent)):
            if row[key] != value:
                yield f"{_place(row)}: {key} is {money(row[key])}, but its offers come to {money(value)}"
        counts = {"wanted": len(offers), "served": len(served), "refused": len(offers) - len(served)}
        expected: dict[str, float | None] = {**counts, **_over_served(served)}
        for key, amount in expected.items():
            error = _CLOSE + (_SIX_DECIMALS if key in ("mean_bid", "mean_payment") else 0.0)
            if (row[key] is None) != (amount is None) or (amount is not None and abs(row[key] - amount) > error):
                yield f"{_place(row)}: {key} is {row[key]}, but its offers come to {amount}"


def _over_served(served: Sequence[Row]) -> dict[str, float | None]:
    """Return what rounds.csv says of served clients: nothing where there are none."""
    if not served:
        return dict.fromkeys(("samples", "mean_emd", "mean_dqi", "mean_bid", "mean_payment", "makespan"))

    def mean(key: str) -> float:
        return float(sum(offer[key] or 0 for offer in served)) / len(served)

    return {
        "samples": sum(offer["data_size"] for offer in served),
        "mean_emd": mean("emd"),
        "mean_dqi": mean("dqi"),
        "mean_bid": mean("bid") / MICRO,
        "mean_payment": mean("paid") / MICRO,
        "makespan": max(offer["end"] or 0.0 for offer in served) - min(offer["start"] or 0.0 for offer in served),
    }


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
        for kind in Kind:
            if sorted(found[kind], key=repr) != sorted(expected.get(kind, []), key=repr):
                yield f"{_place(row)}: its {kind} events are not those of rounds.csv and offers.csv"


def _expected(row: Row, offers: Sequence[Row]) -> dict[Kind, list[tuple[Any, ...]]]:
    """Return a service's events of a round by kind: client, core, amount, and the time where offers.csv has it."""
    if row["status"] is Status.LEFT:
        return {}
    awarded = [offer for offer in offers if offer["outcome"] in _AWARDED]
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
    """Time never runs backwards; a round lasts until its last event or the end of its slot, when the next begins."""
    now = 0.0
    begins: dict[int, float] = {}
    last: dict[int, float] = {}
    for row in logs.events:
        if row["sim_time"] < now:
            yield f"round {row['round']}: time runs backwards, from {now} to {row['sim_time']}"
        now = row["sim_time"]
        begins.setdefault(row["round"], now)
        last[row["round"]] = now
    ends = {row["round"]: row["sim_time"] for row in logs.rounds}
    for row in logs.offers:
        if row["end"] is not None:
            if row["start"] is None or not row["start"] <= row["end"] <= ends.get(row["round"], 0.0):
                yield f"{_client(row)}: works outside of the round"
            last[row["round"]] = max(last.get(row["round"], 0.0), row["end"])
    slot = logs.scenario.timeline.slot
    for row in logs.rounds:
        number = row["round"]
        end = last.get(number, 0.0)
        if slot is not None:
            end = max(end, begins.get(number, 0.0) + slot)
        if abs(row["sim_time"] - end) > _CLOSE * end or row["sim_time"] != begins.get(number + 1, row["sim_time"]):
            yield f"{_place(row)}: the round ends at {row['sim_time']}, but its events say {end}"


RULES: Mapping[str, Callable[[Logs], Iterator[str]]] = {
    rule.__name__: rule for rule in (shape, scenario, bids, payments, cores, totals, progress, timeline, clock)
}
"""All rules, by the name by which columns refer to them."""


def _place(row: Row) -> str:
    return f"round {row['round']}: {row['service']}"


def _client(row: Row) -> str:
    return f"{_place(row)}: client {row['client']}"
