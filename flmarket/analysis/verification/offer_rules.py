"""The rules of ``flmarket verify`` on offers: what clients have and ask, who serves whom, and what that costs."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from des.allocation import NO_CORE, allocate
from des.log_records import Kind, Outcome
from fl.arrays import AnyArray, IntArray
from flmarket.analysis.verification.clearing_rules import clearing
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.verification.findings import Finding, Rows

_SEED = "the run's seed draws"


def world(logs: Logs) -> Iterator[Finding]:
    """Data sizes, EMDs, DQI and bids are those that the run's seed draws for the round, the service and the client."""
    if logs.behaviour is None:
        return  # the rule ``interests`` holds what the client has against the draw
    (drawn, lowest), events = logs.drawn, logs.rows["events"]
    wanted = {name: drawn[name] for name in ("data_size", "emd", "dqi", "bid")}
    yield from logs.rows["offers"].differing(wanted, _SEED)
    asked = events.where((events["event"] == Kind.BID) & (events["m"] >= 0))
    yield from asked.differing({"amount": lowest[logs.places_of(asked)]}, "the lowest bid of the round is")


def interests(logs: Logs) -> Iterator[Finding]:
    """Rows of clients.csv are those of offers.csv; the truth in them is what the seed draws, and the profit adds up."""
    if logs.clients is None:
        return
    clients, offers, (drawn, _) = logs.rows["clients"], logs.rows["offers"], logs.drawn
    if not np.array_equal(clients["round"], offers["round"]):
        yield Finding("clients.csv does not have one row for each row of offers.csv, in order")
        return
    same = {name: offers[name] for name in ("service", "client", "bid", "paid")}
    same |= {"reported_size": offers["data_size"], "reported_emd": offers["emd"]}
    yield from clients.differing(same, "offers.csv has")
    yield from clients.differing({"profit": clients["paid"] - clients["cost"]}, "what it was paid less its cost is")
    truth = {"data_size": drawn["held_data_size"], "emd": drawn["held_emd"], "cost": drawn["cost"]}
    yield from clients.differing(truth, _SEED)


def payments(logs: Logs) -> Iterator[Finding]:
    """Payments and prices are at least the bid (eq. 5), prices at most the payment; only served clients are paid."""
    offers = logs.rows["offers"]
    bid, payment, paid = offers["bid"], offers["payment"], offers["paid"]
    yield from offers.wrong(bid < 0, "the bid {bid} is negative (eq. 5)")
    yield from offers.wrong(payment < bid, "the payment {payment} is below the bid {bid} (eq. 5)")
    served = offers["outcome"] == Outcome.SERVED
    yield from offers.wrong(np.isnan(paid) == served, "was {outcome}, but was paid {paid}")
    yield from offers.wrong(paid < bid, "was paid {paid}, below its bid {bid} (eq. 5)")
    other = (paid > payment) | (logs.by_round(offers, lambda now: now.paper) & (paid < payment))
    yield from offers.wrong(other, "was paid {paid}, but the payment offered is {payment}")


def cores(logs: Logs) -> Iterator[Finding]:
    """A client serves at most K services, one on each core (eq. 2): the highest payments, or the mechanism's choice."""
    yield from clearing(logs)
    offers, core = logs.rows["offers"], logs.rows["offers"]["core"]
    yield from offers.wrong(_repeated(offers, "m"), "the service makes the client two offers")
    available, won = logs.by_round(offers, lambda now: now.cores), offers["outcome"] != Outcome.OUTBID
    placed = (core >= 0) & (core < available) & ~_repeated(offers, "core")
    yield from offers.wrong(won & ~placed, "the client's cores are not used once each (eq. 2)")
    works = ~np.isnan([core, offers["start"], offers["end"]]).all(axis=0)
    yield from offers.wrong(~won & works, "was outbid, but has a core, a start or an end")
    paper = logs.by_round(offers, lambda now: now.paper)
    of_paper, right = offers.where(paper), _highest(logs, offers.where(paper), available[paper])
    wins = right != NO_CORE
    yield from of_paper.where(wins).differing({"core": right[wins]}, "by its payment it should be")
    yield from of_paper.wrong(~wins & won[paper], "was {outcome}, but others pay the client more")


def _repeated(offers: Rows, column: str) -> AnyArray:
    """Return whether a client of one round had the same in an earlier row."""
    return pd.MultiIndex.from_arrays([offers[name] for name in ("round", "client", column)]).duplicated()


def _highest(logs: Logs, offers: Rows, available: IntArray) -> IntArray:
    """Return the core that each of some offers gets by its payment, of all rounds at once; NO_CORE if it is outbid."""
    clients = logs.scenario.clients.count
    of_client = offers["round"] * clients + offers["client"]  # a client of one round
    core = np.empty(len(offers), dtype=np.int64)
    for cores in np.unique(available).tolist():
        own = available == cores
        columns = offers["m"][own], of_client[own], offers["payment"][own]
        core[own] = allocate(*columns, cores, lambda of: logs.tie_order(of // clients, of % clients))
    return core
