"""The rules of ``flmarket verify`` on clients.csv: what clients really have, what it costs them, and what they earn."""

from collections.abc import Iterator
from itertools import zip_longest

from des.money import text as money
from scenarios.judging.evidence import Logs, Row
from scenarios.judging.wording import at_client

_SAME = {
    "service": "service",
    "client": "client",
    "reported_size": "data_size",
    "reported_emd": "emd",
    "bid": "bid",
    "paid": "paid",
}
"""Columns of clients.csv that repeat those of offers.csv."""


def interests(logs: Logs) -> Iterator[str]:
    """Rows of clients.csv are those of offers.csv; the truth in them is what the seed draws, and the profit adds up."""
    if logs.clients is None:
        return
    for line, (row, offer) in enumerate(zip_longest(logs.clients, logs.offers), start=2):
        if row is None or offer is None or row["round"] != offer["round"]:
            yield f"clients.csv, line {line}: does not have one row for each row of offers.csv, in order"
            return
        for key, other in _SAME.items():
            if row[key] != offer[other]:
                yield f"{at_client(row)}: {key} in clients.csv is {row[key]!r}, but offers.csv has {offer[other]!r}"
        known = row["service"] in logs.places and 0 <= row["client"] < logs.scenario.clients.count
        if known and 1 <= row["round"] <= logs.scenario.rounds:
            yield from _truth(logs, row)
        profit = None if row["paid"] is None else row["paid"] - row["cost"]
        if row["profit"] != profit:
            found, wanted = ("nothing" if it is None else money(it) for it in (row["profit"], profit))
            yield f"{at_client(row)}: the profit is {found}, but what it was paid less its cost is {wanted}"


def _truth(logs: Logs, row: Row) -> Iterator[str]:
    m = logs.places[row["service"]]
    held, at = logs.held(row["round"]), (m, row["client"])
    expected: dict[str, float] = {"data_size": int(held.data_size[at])}
    if logs.scenario.services[m].dataset in logs.data.datasets:
        expected["emd"] = float(held.emd[at])
    if logs.known:
        expected["cost"] = int(held.cost[at])
    for key, value in expected.items():
        if row[key] != value:
            found, wanted = (money(row[key]), money(int(value))) if key == "cost" else (row[key], value)
            yield f"{at_client(row)}: {key} in clients.csv is {found}, but the run's seed draws {wanted}"
