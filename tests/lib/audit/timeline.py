"""The simulated clock: how long jobs take, when rounds end, and which events there are."""

from fractions import Fraction
from math import inf

import numpy as np
import pandas as pd

from audit.runs import MICRO, Run
from audit.world import World

STEPS = [
    "refresh", "bid", "decision", "award", "train_start", "train_end", "upload", "aggregate", "evaluate", "pay", "exit",
]  # fmt: skip
"""The order in which what concerns one service can happen in a round."""


def jobs(run: Run) -> pd.DataFrame:
    """Outcome, start and end of the offers that were awarded, and when their training ends.

    A job computes for D images and uploads; it is dropped if that outlasts the slot, the deadline or the client.
    """
    world, timeline = World(run), run.scenario["timeline"]
    offers = run.offers if run.truth is None else run.offers.assign(data_size=run.truth.data_size)
    awarded = offers[offers.outcome != "outbid"]
    begin = awarded["round"].map(run.begins)
    images = awarded.data_size * awarded.service.map(run.epochs)
    image = Fraction(str(timeline["seconds_per_sample"])) * MICRO
    compute = images * image / awarded.client.map(world.speed).map(str).map(Fraction)
    compute = compute.map(round).astype(float)
    whole = compute + round(timeline["upload_seconds"] * MICRO)
    part = [world.leaves(*place) for place in zip(awarded["round"], awarded.client, strict=True)]
    patience = min(timeline.get("slot", inf), timeline.get("deadline", inf)) * MICRO
    limit = np.floor(part * whole).clip(upper=patience if patience == inf else round(patience))
    return pd.DataFrame(
        {
            "outcome": np.where(whole <= limit, "served", "dropped"),
            "start": begin,
            "end": begin + np.minimum(whole, limit),
            "trained": (begin + compute).where(compute <= limit),
        },
        index=awarded.index,
    )


def ends(run: Run) -> pd.Series:
    """When the round of each row of rounds.csv ends: with its slot, or with its last job."""
    last = run.offers.groupby("round").end.max().reindex(run.begins.index)
    slot = round(run.scenario["timeline"].get("slot", 0) * MICRO)
    return run.rounds["round"].map(np.fmax(last, run.begins + slot))


def events(run: Run) -> pd.DataFrame:
    """All events but the decisions, whose sum is what is offered; the amounts of bids are those of the log."""
    offers = run.offers.assign(begin=run.offers["round"].map(run.begins), trained=jobs(run).trained)
    offers[["payment", "paid"]] /= MICRO
    awarded, served = offers[offers.outcome != "outbid"], offers[offers.outcome == "served"]
    closes = offers.groupby(["round", "service"]).end.max()
    rounds = run.rounds.join(closes, on=["round", "service"])
    rounds["begin"] = rounds["round"].map(run.begins)
    rounds["end"] = rounds.end.fillna(rounds.begin)
    present, taught = rounds[~rounds.status.isin(["left", "waiting"])], rounds[rounds.served > 0]
    each_round = run.begins.rename("begin").reset_index()
    paid = served.drop(columns=["core", "end"]).join(closes, on=["round", "service"])
    exits = rounds[rounds.status == "reached"]
    found = [
        _event("refresh", each_round, "begin"),
        _event("bid", present, "begin"),
        _event("award", awarded, "begin", "payment"),
        _event("train_start", awarded, "begin"),
        _event("train_end", awarded[awarded.trained.notna()], "trained"),
        _event("upload", served, "end"),
        _event("aggregate", taught, "end", "samples"),
        _event("evaluate", taught, "end", "accuracy"),
        _event("pay", paid, "end", "paid"),
        _event("exit", exits, "end", "accuracy"),
    ]
    return pd.concat(found, ignore_index=True)


def _event(event: str, rows: pd.DataFrame, time: str, amount: str | None = None) -> pd.DataFrame:
    places = rows.reindex(columns=["round", "service", "client", "core"])
    return places.assign(event=event, sim_time=rows[time], amount=np.nan if amount is None else rows[amount])


def lowest_bids(run: Run) -> pd.Series:
    """The least that a client asks for of each service that has a bid event, in units of money."""
    world, clients = World(run), range(run.scenario["clients"]["count"])
    bids = run.events[run.events.event == "bid"]
    lowest = [
        min(world.cost(number, service, client) for client in clients)
        for number, service in zip(bids["round"], bids.service, strict=True)
    ]
    return pd.Series(lowest, index=bids.index) / MICRO
