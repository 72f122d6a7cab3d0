"""The columns of a run's tables that are not what the oracles say."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from audit import market, timeline
from audit.learning import accuracies_of
from audit.runs import MICRO, Run

SLACK = {
    "dqi": 1e-11, "accuracy": 5.1e-7, "test_accuracy": 5.1e-7,
}  # fmt: skip
"""By how much a column may be off, as it is rounded; money is in millionths. All others are the same."""
RELATIVE = {"reward": 1e-10}


def wrong(run: Run) -> list[str]:
    """Return what is wrong with a run: names of tables and columns, or constraints."""
    return [*_offers(run), *_rounds(run), *_events(run)]


def unequal(table: str, found: pd.DataFrame, wanted: pd.DataFrame) -> Iterator[str]:
    """Yield the columns of ``wanted`` that a table does not have."""
    for name in wanted:
        one, other = found[name], wanted[name]
        if pd.api.types.is_numeric_dtype(other):
            absolute = max(SLACK.get(str(name), 0.0), 1e-12 if name in RELATIVE else 0.0)
            alike = np.isclose(one, other, rtol=RELATIVE.get(str(name), 0.0), atol=absolute, equal_nan=True)
        else:
            alike = one.eq(other) | (one.isna() & other.isna())
        if not np.all(alike):
            yield f"{table}: {name}"


def failed(**constraints: "pd.Series[bool] | bool") -> Iterator[str]:
    """Yield the names of constraints that do not hold everywhere."""
    return (name for name, holds in constraints.items() if not np.all(holds))


def _offers(run: Run) -> Iterator[str]:
    offers, truth, held = run.offers, run.truth, market.holdings(run)
    yield from unequal("offers", offers, market.qualities(run))
    if truth is None:
        yield from unequal("offers", offers, held.rename(columns={"cost": "bid"}))
    else:
        yield from unequal("clients", truth, held.assign(profit=truth.paid - held.cost))
        same = {"data_size": "reported_size", "emd": "reported_emd"}
        shared = offers[["round", "service", "client", "bid", "paid", "data_size", "emd"]].rename(columns=same)
        yield from unequal("clients", truth, shared)
        yield from failed(markups=_marked_up(run))
    clients, outbid = run.scenario["clients"], offers.outcome == "outbid"
    awarded = offers[~outbid]
    yield from unequal("offers", awarded, timeline.jobs(run)[["outcome", "start", "end"]])
    numbers = awarded.sort_values("core").groupby(["round", "client"]).cumcount().sort_index()
    yield from failed(
        known=offers.client.between(0, clients["count"] - 1),
        once=~offers.duplicated(["round", "service", "client"]),
        cores=(awarded.core == numbers) & (awarded.core < clients["cores"]),
        idle=offers.loc[outbid, ["core", "start", "end"]].isna(),
        eq_5=offers.payment >= offers.bid,
        paid=offers.paid.notna() == (offers.outcome == "served"),
        price=offers.paid.isna() | offers.paid.between(offers.bid, offers.payment),
    )
    if run.mechanism in market.HIGHEST_PAYMENTS_WIN:
        yield from failed(winners=market.winners(run) == ~outbid)
    prices = market.uniform_prices(run) if run.mechanism == "uniform-price" else offers.payment
    if run.mechanism in market.HIGHEST_PAYMENTS_WIN:
        yield from unequal("offers", offers, prices.where(offers.outcome == "served").to_frame("paid"))


def _marked_up(run: Run) -> "pd.Series[bool] | bool":
    """Whether clients that learn to ask for more bid their cost with one of the markups."""
    assert run.truth is not None
    behaviour = run.scenario["clients"]["behaviour"]
    if behaviour["kind"] != "adaptive":
        return True
    markups = behaviour.get("options", {}).get("markups", [0, 0.1, 0.2, 0.4, 0.8])
    asked = [(run.truth.bid - run.truth.cost * (1 + markup)).abs() <= 0.501 for markup in markups]
    return pd.concat(asked, axis=1).any(axis=1)


def _rounds(run: Run) -> Iterator[str]:
    rounds, names = run.rounds, list(run.services)
    places = [(number, name) for number in range(1, run.meta["rounds"] + 1) for name in names]
    gone = rounds.status.isin(["reached", "left"]).groupby(rounds["round"]).all()
    yield from failed(
        rows=list(zip(rounds["round"], rounds.service, strict=True)) == places,
        last_round=not gone[:-1].any() and (gone.iloc[-1] or len(gone) == run.scenario["rounds"]),
    )
    accuracy = accuracies_of(run)
    wanted = market.services(run, accuracy.accuracy)
    yield from unequal("rounds", rounds, accuracy)
    yield from unequal("rounds", rounds, wanted.assign(sim_time=timeline.ends(run)))
    before = rounds.groupby("service")[["accuracy", "test_accuracy"]].shift()
    kept = before.eq(rounds[before.columns]).all(axis=1) | before.accuracy.isna()
    yield from failed(
        learns_of_nobody=(rounds.served > 0) | kept,
        offers_of_absent=(rounds.wanted == 0) | rounds.status.isin(["training", "reached"]),
        eq_4=rounds.spent <= rounds.budget,
    )
    if run.mechanism in ("pay-as-offered", "uniform-price"):
        yield from failed(offered=rounds.offered <= rounds.budget)


def _events(run: Run) -> Iterator[str]:
    events, wanted, keys = run.events, timeline.events(run), ["round", "event", "service", "client", "core"]
    bids = events.event == "bid"
    if run.truth is None:
        yield from unequal("events", events[bids], timeline.lowest_bids(run).to_frame("amount"))
    else:
        least = run.offers.groupby(["round", "service"]).bid.min().rename("least") / MICRO
        asked = events[bids].join(least, on=["round", "service"])
        yield from failed(lowest_bid=~(asked.amount > asked.least))
    decided = events[events.event == "decision"].groupby(["round", "service"]).amount.sum() * MICRO
    offered = run.rounds.set_index(["round", "service"]).offered
    yield from failed(decisions=np.isclose(decided.reindex(offered.index, fill_value=0), offered, rtol=0, atol=0.01))
    found = events.assign(amount=events.amount.mask(bids))
    found = found[events.event != "decision"].sort_values(keys, ignore_index=True)
    wanted = wanted.sort_values(keys, ignore_index=True)
    yield from unequal("events", found, wanted) if len(found) == len(wanted) else ["events: rows"]
    steps = events.event.map(timeline.STEPS.index)
    # Of one client where it has one in it, else of the service.
    back = steps.groupby([events["round"], events.service, events.client], dropna=False).diff() < 0
    yield from failed(order=events.sim_time.is_monotonic_increasing and not back.any())
    decisions = events[events.event == "decision"]
    yield from failed(at_once=np.isclose(decisions.sim_time, decisions["round"].map(run.begins)))
