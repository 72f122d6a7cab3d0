"""The rules of ``flmarket verify`` on offers: what clients have and ask, who serves whom, and what that costs."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from des.allocation import tie_order_of
from des.log_records import Kind, Outcome
from des.money import MICRO
from des.money import text as money
from des.population import Qualities
from scenarios.judging.clearing_rules import clearing
from scenarios.judging.evidence import Logs, Row
from scenarios.judging.slots import AWARDED
from scenarios.judging.wording import at_client

_ROUNDING = 0.5 + 1e-3  # of money to micro-units, and of the logged EMD


def bids(logs: Logs) -> Iterator[str]:
    """Each bid follows from the cost of the data that the client reports; a truthful client bids the cost."""
    cost = logs.scenario.clients.cost
    if logs.behaviour is None:
        return  # of a plug-in that is not here
    behaviour = logs.population.spec.behaviour
    places = {service.name: m for m, service in enumerate(logs.scenario.services)}
    factors: dict[int, list[float]] = {}  # of the last round that was asked for
    for row in logs.offers:
        if row["service"] not in places:
            continue  # the rule ``shape`` names it
        asked = cost.per_sample * row["data_size"] - cost.per_emd * row["emd"]
        # The range of micro-units that the cost can have been rounded to; one number, but for ties.
        near = [max(0, math.ceil(asked * MICRO - _ROUNDING)), max(0, math.floor(asked * MICRO + _ROUNDING))]
        if cost.noise:
            if not (0 <= row["client"] < logs.scenario.clients.count and 1 <= row["round"] <= logs.scenario.rounds):
                continue  # the rules ``scenario`` and ``shape`` name it
            if row["round"] not in factors:
                factors = {row["round"]: logs.population.cost_factors(row["round"]).tolist()}
            factor = factors[row["round"]][row["client"]]
            asked, near = asked * factor, [round(amount * factor) for amount in near]
        low, high = behaviour.bid_range(*(np.full(len(places), amount, np.int64) for amount in near))
        if not low[places[row["service"]]] <= row["bid"] <= high[places[row["service"]]]:
            bid = money(row["bid"])
            yield f"{at_client(row)}: the bid {bid} does not follow from the cost of its data, {asked:.6f}"


def world(logs: Logs) -> Iterator[str]:
    """Data sizes, EMDs, DQI and bids are those that the run's seed draws for the round, the service and the client."""
    for number, drawn in logs.worlds():
        for row in logs.offers_in.get(number, []):
            if row["service"] in logs.places and 0 <= row["client"] < logs.scenario.clients.count:
                yield from _drawn(logs, drawn, row)
        for row in logs.events_in.get(number, []):
            if row["event"] is Kind.BID and row["service"] in logs.places and logs.known and logs.behaviour:
                lowest = int(drawn.bid[logs.places[row["service"]]].min())
                if row["amount"] != lowest:
                    found = "nothing" if row["amount"] is None else money(row["amount"])
                    yield f"round {number}: {row['service']}: the lowest bid is {money(lowest)}, not {found}"


def _drawn(logs: Logs, drawn: Qualities, row: Row) -> Iterator[str]:
    if logs.behaviour is None:
        return  # the rule ``interests`` holds what the client has against the draw
    m = logs.places[row["service"]]
    at = m, row["client"]
    expected: dict[str, float] = {"data_size": int(drawn.data_size[at])}
    if logs.scenario.services[m].dataset in logs.data.labels:
        expected |= {"emd": float(drawn.emd[at]), "dqi": float(drawn.dqi[at])}
    if logs.known:
        expected["bid"] = int(drawn.bid[at])
    for key, value in expected.items():
        if row[key] != value:
            found, wanted = (money(row[key]), money(int(value))) if key == "bid" else (row[key], value)
            yield f"{at_client(row)}: {key} is {found}, but the run's seed draws {wanted}"


def payments(logs: Logs) -> Iterator[str]:
    """Payments and prices are at least the bid (eq. 5), prices at most the payment; only served clients are paid."""
    for row in logs.offers:
        paper = logs.conditions(row["round"]).paper
        bid, payment, paid = row["bid"], row["payment"], row["paid"]
        if bid < 0:
            yield f"{at_client(row)}: the bid {money(bid)} is negative (eq. 5)"
        elif payment < bid:
            yield f"{at_client(row)}: the payment {money(payment)} is below the bid {money(bid)} (eq. 5)"
        if (paid is not None) != (row["outcome"] is Outcome.SERVED):
            yield f"{at_client(row)}: was {row['outcome']}, but was {'not ' if paid is None else ''}paid"
        elif paid is not None and paid < bid:
            yield f"{at_client(row)}: was paid {money(paid)}, below its bid {money(bid)} (eq. 5)"
        elif paid is not None and (paid > payment or (paper and paid != payment)):
            yield f"{at_client(row)}: was paid {money(paid)}, but the payment offered is {money(payment)}"


def cores(logs: Logs) -> Iterator[str]:
    """A client serves at most K services, one on each core (eq. 2): the highest payments, or the mechanism's choice."""
    yield from clearing(logs)
    of_client: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in logs.offers:
        of_client[row["round"], row["client"]].append(row)
    for (number, client), rows in of_client.items():
        where = f"round {number}: client {client}"
        available, paper = logs.conditions(number).cores, logs.conditions(number).paper
        won = [row for row in rows if row["outcome"] in AWARDED]
        lost = [row for row in rows if row["outcome"] not in AWARDED]
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
        if paper:
            yield from _highest(logs, number, client, rows)


def _highest(logs: Logs, number: int, client: int, rows: Sequence[Row]) -> Iterator[str]:
    """Yield whether a client's cores are not given to the highest payments in their order; a keyed draw breaks ties."""
    if any(row["service"] not in logs.places for row in rows):
        return  # the rule ``shape`` names it
    available = logs.conditions(number).cores
    order = sorted(rows, key=lambda row: (-row["payment"], logs.places[row["service"]]))
    if len(order) > available and order[available]["payment"] == order[available - 1]["payment"]:
        draw = tie_order_of(logs.ties, number, len(logs.places), client)
        order.sort(key=lambda row: (-row["payment"], draw[logs.places[row["service"]]]))
    for core, row in enumerate(order):
        won = core < available
        if (row["outcome"] in AWARDED) != won or row["core"] != (core if won else None):
            wanted = f"core {core}" if won else "no core"
            yield f"{at_client(row)}: its payment wins {wanted}, but the offer is {row['outcome']}, core {row['core']}"
