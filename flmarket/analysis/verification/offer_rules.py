"""The rules of ``flmarket verify`` on offers: what clients have and ask, who serves whom, and what that costs."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from des.allocation import tie_order_of
from des.clients.population import Held, Qualities
from des.log_records import Kind, Outcome
from des.money import MICRO
from flmarket.analysis.verification.clearing_rules import clearing
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.verification.findings import differing, wrong

_ROUNDING = 0.5 + 1e-3  # of money to micro-units, and of the logged EMD
_SEED = "the run's seed draws"


def bids(logs: Logs) -> Iterator[str]:
    """Each bid follows from the cost of the data that the client reports; a truthful client bids the cost."""
    cost, offers = logs.scenario.clients.cost, logs.offers
    if logs.behaviour is None or offers.empty:
        return  # of a plug-in that is not here
    asked = MICRO * (cost.per_sample * offers["data_size"] - cost.per_emd * offers["emd"])
    # The range of micro-units that the cost can have been rounded to; one number, but for ties.
    near = [np.ceil(asked - _ROUNDING).clip(0), np.floor(asked + _ROUNDING).clip(0)]
    if cost.noise:
        factors = {number: logs.population.cost_factors(number) for number in offers["round"].unique()}
        own = [factors[n][client] for n, client in zip(offers["round"], offers["client"], strict=True)]
        near = [(amount * own).round() for amount in near]
    services = len(logs.places)
    ranges = {  # of the same cost for any service
        costs: logs.population.spec.behaviour.bid_range(*(np.full(services, amount, np.int64) for amount in costs))
        for costs in set(zip(*near, strict=True))
    }
    place = offers["service"].map(logs.places)
    low, high = (
        np.array([ranges[costs][end][m] for costs, m in zip(zip(*near, strict=True), place, strict=True)])
        for end in (0, 1)
    )
    yield from wrong(
        offers, ~offers["bid"].between(low, high), "the bid {bid} does not follow from the cost of its data"
    )


def world(logs: Logs) -> Iterator[str]:
    """Data sizes, EMDs, DQI and bids are those that the run's seed draws for the round, the service and the client."""
    if logs.behaviour is None:
        return  # the rule ``interests`` holds what the client has against the draw
    lowest: dict[tuple[int, str], int] = {}

    def drawn() -> Iterator[tuple[int, Qualities]]:
        for number, world in logs.worlds():
            lowest.update({(number, name): int(world.bid[m].min()) for name, m in logs.places.items()})
            yield number, world

    wanted = _drawn(logs, ["data_size", "emd", "dqi", *(["bid"] if logs.known else [])], drawn())
    labels = logs.offers["service"].isin([it.name for it in logs.scenario.services if it.dataset in logs.data.labels])
    for name in ("emd", "dqi"):
        wanted[name] = wanted[name].where(labels, logs.offers[name])
    yield from differing(logs.offers, wanted, _SEED)
    asked = logs.events[(logs.events["event"] == Kind.BID) & logs.events["service"].notna()]
    if logs.known:
        bids = [lowest[key] for key in zip(asked["round"], asked["service"], strict=True)]
        yield from wrong(asked, asked["amount"] != bids, "its bid event has not the lowest bid of the round")


def interests(logs: Logs) -> Iterator[str]:
    """Rows of clients.csv are those of offers.csv; the truth in them is what the seed draws, and the profit adds up."""
    clients, offers = logs.clients, logs.offers
    if clients is None:
        return
    if len(clients) != len(offers) or (clients["round"] != offers["round"]).any():
        yield "clients.csv does not have one row for each row of offers.csv, in order"
        return
    reported = offers.rename(columns={"data_size": "reported_size", "emd": "reported_emd"})
    same = ["service", "client", "reported_size", "reported_emd", "bid", "paid"]
    yield from differing(clients, reported[same], "offers.csv has")
    profit = clients["paid"] - clients["cost"]
    yield from differing(clients, pd.DataFrame({"profit": profit}), "what it was paid less its cost is")
    held = ((number, logs.held(number)) for number in logs.numbers)
    wanted = _drawn(logs, ["data_size", "emd", *(["cost"] if logs.known else [])], held)
    labels = offers["service"].isin([it.name for it in logs.scenario.services if it.dataset in logs.data.datasets])
    wanted["emd"] = wanted["emd"].where(labels, clients["emd"])
    yield from differing(clients, wanted, _SEED)


def _drawn(logs: Logs, names: Sequence[str], worlds: Iterable[tuple[int, Qualities | Held]]) -> pd.DataFrame:
    """Return what the worlds of all rounds have for each offer."""
    service, client = logs.offered_to
    found: dict[str, list[Any]] = {name: [] for name in names}
    for number, world in worlds:
        places = logs.places_of(number)
        for name in names:
            found[name].append(getattr(world, name)[service[places], client[places]])
    return pd.DataFrame({name: np.concatenate(parts) for name, parts in found.items()})


def payments(logs: Logs) -> Iterator[str]:
    """Payments and prices are at least the bid (eq. 5), prices at most the payment; only served clients are paid."""
    offers = logs.offers
    bid, payment, paid, served = offers["bid"], offers["payment"], offers["paid"], offers["outcome"] == Outcome.SERVED
    paper = offers["round"].map({number: logs.conditions(number).paper for number in logs.numbers})
    yield from wrong(offers, bid < 0, "the bid {bid} is negative (eq. 5)")
    yield from wrong(offers, payment < bid, "the payment {payment} is below the bid {bid} (eq. 5)")
    yield from wrong(offers, paid.notna() != served, "was {outcome}, but was paid {paid}")
    yield from wrong(offers, paid < bid, "was paid {paid}, below its bid {bid} (eq. 5)")
    too_much = (paid > payment) | (paper & paid.notna() & (paid != payment))
    yield from wrong(offers, too_much, "was paid {paid}, but the payment offered is {payment}")


def cores(logs: Logs) -> Iterator[str]:
    """A client serves at most K services, one on each core (eq. 2): the highest payments, or the mechanism's choice."""
    yield from clearing(logs)
    offers = logs.offers.assign(
        won=logs.offers["outcome"] != Outcome.OUTBID,
        available=logs.offers["round"].map({number: logs.conditions(number).cores for number in logs.numbers}),
    )
    of_client = offers.groupby(["round", "client"])
    yield from wrong(offers, offers.duplicated(["round", "client", "service"]), "a service wants it twice")
    too_many = of_client["won"].transform("sum") > offers["available"]
    yield from wrong(offers, too_many, "serves more services than it has cores (eq. 2)")
    placed = offers["core"].between(0, offers["available"] - 1) & ~offers.duplicated(["round", "client", "core"])
    yield from wrong(offers, offers["won"] & ~placed, "its cores are not used once each")
    idle = offers[["core", "start", "end"]].isna().all(axis=1)
    yield from wrong(offers, ~offers["won"] & ~idle, "was outbid, but works")
    paper = [number for number in logs.numbers if logs.conditions(number).paper]
    yield from _highest(logs, offers[offers["round"].isin(paper)])


def _highest(logs: Logs, offers: pd.DataFrame) -> Iterator[str]:
    """Yield whether clients' cores are not given to the highest payments in their order; a keyed draw breaks ties."""
    keys = ["round", "client"]
    ordered = offers.assign(lower=-offers["payment"], draw=offers["service"].map(logs.places).astype(float))
    ranked = ordered.sort_values([*keys, "lower", "draw"])
    last = ranked.groupby(keys).cumcount() == ranked["available"] - 1
    tied = ranked[last & (ranked["lower"] == ranked.groupby(keys)["lower"].shift(-1))]
    for number, client in zip(tied["round"], tied["client"], strict=True):
        mine = (ordered["round"] == number) & (ordered["client"] == client)
        draw = tie_order_of(logs.ties, number, len(logs.places), client)
        ordered.loc[mine, "draw"] = draw[ordered.loc[mine, "draw"].astype(int)]
    rank = ordered.sort_values([*keys, "lower", "draw"]).groupby(keys).cumcount().reindex(offers.index)
    core = rank.where(rank < offers["available"])
    yield from differing(offers, pd.DataFrame({"core": core}), "its payment wins core")
    yield from wrong(offers, offers["won"] != core.notna(), "is {outcome}, but its payment says otherwise")
