"""The rules of ``flmarket verify`` on offers: what clients have and ask, who serves whom, and what that costs."""

from collections.abc import Container, Iterator

import numpy as np
import pandas as pd

from des.allocation import NO_CORE, allocate, tie_order_of
from des.log_records import Kind, Outcome
from des.money import MICRO
from fl.arrays import AnyArray, BoolArray, FloatArray, IntArray
from flmarket.analysis.verification.clearing_rules import clearing
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.verification.findings import Finding

_ROUNDING = 0.5 + 1e-3  # of money to micro-units, and of the logged EMD
_SEED = "the run's seed draws"


def bids(logs: Logs) -> Iterator[Finding]:
    """Each bid follows from the cost of the data that the client reports; a truthful client bids the cost."""
    cost, offers, behaviour = logs.scenario.clients.cost, logs.rows["offers"], logs.behaviour
    if behaviour is None:  # of a plug-in that is not here
        return
    asked = MICRO * (cost.per_sample * offers["data_size"] - cost.per_emd * offers["emd"])
    # The range of micro-units that the cost can have been rounded to; one number, but for ties.
    low, high = np.ceil(asked - _ROUNDING).clip(0), np.floor(asked + _ROUNDING).clip(0)
    if cost.noise:
        factors = np.array([logs.population.cost_factors(number) for number in logs.numbers])
        own = factors[offers["round"] - 1, offers["client"]]
        low, high = np.rint(low * own), np.rint(high * own)
    if not logs.population.truthful:
        low, high = _bid_range(logs, low, high)
    other = (offers["bid"] < low) | (offers["bid"] > high)
    yield from offers.wrong(other, "the bid {bid} does not follow from the cost of its data")


def _bid_range(logs: Logs, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the lowest and the highest bid that follow from the range of costs of each offer."""
    service, count = logs.offered_to[0], len(logs.places)
    ranges, which = np.unique(np.array([low, high]), axis=1, return_inverse=True)
    bid_range = logs.population.spec.behaviour.bid_range
    found = [bid_range(*(np.full(count, cost, np.int64) for cost in costs)) for costs in ranges.T]
    lowest, highest = (np.array([bids[end] for bids in found]).reshape(-1, count) for end in (0, 1))
    return lowest[which, service], highest[which, service]


def world(logs: Logs) -> Iterator[Finding]:
    """Data sizes, EMDs, DQI and bids are those that the run's seed draws for the round, the service and the client."""
    if logs.behaviour is None:
        return  # the rule ``interests`` holds what the client has against the draw
    offers, (drawn, lowest) = logs.rows["offers"], logs.drawn[:2]
    labels = _labels_are_known(logs, logs.data.labels)
    wanted = {"data_size": drawn["data_size"]}
    wanted |= {name: np.where(labels, drawn[name], offers[name]) for name in ("emd", "dqi")}
    if logs.known:
        wanted["bid"] = drawn["bid"]
    yield from offers.differing(wanted, _SEED)
    if logs.known:
        events = logs.rows["events"]
        asked = events.where(events.has("event", Kind.BID) & (events["service"] == events["service"]))
        right = lowest[asked["round"] - 1, logs.services_of(asked)]
        what = "the amount of its bid event is not the lowest bid of the round"
        yield from asked.wrong(asked["amount"] != right, what)


def interests(logs: Logs) -> Iterator[Finding]:
    """Rows of clients.csv are those of offers.csv; the truth in them is what the seed draws, and the profit adds up."""
    if logs.clients is None:
        return
    clients, offers = logs.rows["clients"], logs.rows["offers"]
    if clients["round"].tolist() != offers["round"].tolist():
        yield Finding("clients.csv", None, "clients.csv does not have one row for each row of offers.csv, in order")
        return
    same = {name: offers[name] for name in ("service", "client", "bid", "paid")}
    same |= {"reported_size": offers["data_size"], "reported_emd": offers["emd"]}
    yield from clients.differing(same, "offers.csv has")
    yield from clients.differing({"profit": clients["paid"] - clients["cost"]}, "what it was paid less its cost is")
    labels, drawn = _labels_are_known(logs, logs.data.datasets), logs.drawn.offers
    wanted = {"data_size": drawn["held_data_size"], "emd": np.where(labels, drawn["held_emd"], clients["emd"])}
    if logs.known:
        wanted["cost"] = drawn["cost"]
    yield from clients.differing(wanted, _SEED)


def _labels_are_known(logs: Logs, datasets: Container[str]) -> BoolArray:
    """Return whether the labels of each offer's data set are known."""
    return np.array([it.dataset in datasets for it in logs.scenario.services])[logs.offered_to[0]]


def payments(logs: Logs) -> Iterator[Finding]:
    """Payments and prices are at least the bid (eq. 5), prices at most the payment; only served clients are paid."""
    offers = logs.rows["offers"]
    bid, payment, paid = offers["bid"], offers["payment"], offers["paid"]
    is_paid, served = ~np.isnan(paid), offers.has("outcome", Outcome.SERVED)
    paper = logs.by_round(offers, lambda now: now.paper)
    yield from offers.wrong(bid < 0, "the bid {bid} is negative (eq. 5)")
    yield from offers.wrong(payment < bid, "the payment {payment} is below the bid {bid} (eq. 5)")
    yield from offers.wrong(is_paid != served, "was {outcome}, but was paid {paid}")
    yield from offers.wrong(paid < bid, "was paid {paid}, below its bid {bid} (eq. 5)")
    too_much = (paid > payment) | (paper & is_paid & (paid != payment))
    yield from offers.wrong(too_much, "was paid {paid}, but the payment offered is {payment}")


def cores(logs: Logs) -> Iterator[Finding]:
    """A client serves at most K services, one on each core (eq. 2): the highest payments, or the mechanism's choice."""
    yield from clearing(logs)
    offers, (service, client) = logs.rows["offers"], logs.offered_to
    core, won = offers["core"], ~offers.has("outcome", Outcome.OUTBID)
    available = logs.by_round(offers, lambda now: now.cores)
    of_client = offers["round"] * logs.scenario.clients.count + client
    yield from offers.wrong(_repeated(of_client, service), "the service makes the client two offers")
    too_many = np.bincount(of_client, won)[of_client] > available
    yield from offers.wrong(too_many, "the client serves more services than it has cores (eq. 2)")
    placed = (core >= 0) & (core < available) & ~_repeated(of_client, core)
    yield from offers.wrong(won & ~placed, "the client's cores are not used once each")
    works = ~np.isnan([core, offers["start"], offers["end"]]).all(axis=0)
    yield from offers.wrong(~won & works, "was outbid, but has a core, a start or an end")
    paper = np.flatnonzero(logs.by_round(offers, lambda now: now.paper))
    of_paper, right = offers.where(paper), _highest(logs, paper, available[paper])
    wins = right != NO_CORE
    yield from of_paper.where(wins).differing({"core": right[wins]}, "by its payment it should be")
    highest = "was outbid, but its payment is one of the highest, which win the client's cores"
    yield from of_paper.wrong(wins & ~won[paper], highest)
    yield from of_paper.wrong(~wins & won[paper], "was {outcome}, but others pay the client more")


def _repeated(*keys: AnyArray) -> BoolArray:
    """Return whether the same keys occurred in an earlier row."""
    return pd.MultiIndex.from_arrays(keys).duplicated()


def _highest(logs: Logs, places: IntArray, available: IntArray) -> IntArray:
    """Return the core that each of these offers gets by its payment, of all rounds at once; NO_CORE if it is outbid."""
    service, client = (it[places] for it in logs.offered_to)
    payment, clients = logs.rows["offers"]["payment"][places], logs.scenario.clients.count
    of_client = logs.rows["offers"]["round"][places] * clients + client  # a client of one round

    def tie_order(of: IntArray) -> FloatArray:
        return tie_order_of(logs.ties, of // clients, len(logs.places), of % clients)

    core = np.empty(len(places), dtype=np.int64)
    for cores in np.unique(available).tolist():
        own = available == cores
        core[own] = allocate(service[own], of_client[own], payment[own], cores, tie_order)
    return core
