"""The values of offers.csv, clients.csv and rounds.csv, given whom services want, what they offer, and how well they
learn.

Each function returns a frame with the rows of the run's table, and the columns that it works out.
"""

import numpy as np
import pandas as pd

from audit.runs import MICRO, Run
from audit.world import World, quality

HIGHEST_PAYMENTS_WIN = ("pay-as-offered", "uniform-price", "iterated")


def holdings(run: Run) -> pd.DataFrame:
    """The data that the clients of the offers hold, and what it costs them: eq. (1) and the draws."""
    world, offers = World(run), run.offers
    places = list(zip(offers["round"], offers.service, offers.client, strict=True))
    held = pd.DataFrame([world.held(*place) for place in places], columns=["data_size", "emd"])
    return held.assign(cost=[float(world.cost(*place)) for place in places])


def qualities(run: Run) -> pd.DataFrame:
    """The DQI of what clients say that they hold: eq. (6)."""
    told = zip(run.offers.data_size, run.offers.emd, run.offers.service, strict=True)
    return pd.DataFrame({"dqi": [quality(size, emd, run.eta(service)) for size, emd, service in told]})


def winners(run: Run) -> pd.Series:
    """Whether each offer is one of the K highest payments of its client, of equal ones with the lowest draw."""
    world, offers = World(run), run.offers
    draws = [world.tie(*place) for place in zip(offers["round"], offers.service, offers.client, strict=True)]
    order = offers.assign(draw=draws).sort_values(["payment", "draw"], ascending=[False, True])
    return order.groupby(["round", "client"]).cumcount().sort_index() < run.scenario["clients"]["cores"]


def uniform_prices(run: Run) -> pd.Series:
    """The price of a winner where the price is the highest losing payment, but at least its bid."""
    lost = run.offers.payment.where(run.offers.outcome == "outbid")
    highest = lost.groupby([run.offers["round"], run.offers.client]).transform("max").fillna(0)
    return highest.clip(lower=run.offers.bid)


def services(run: Run, accuracy: pd.Series) -> pd.DataFrame:
    """Status, budget and reward of services: they wait, train, reach their target, and leave; Omega^accuracy.

    ``accuracy`` has all its digits.
    """
    parts = []
    for name, service in run.services.items():
        rows = run.rounds[run.rounds.service == name]
        waits = rows["round"] < service.get("arrival", 1)
        met = ~waits & (accuracy[rows.index] >= service["target_accuracy"])
        gone = met.cumsum().shift(fill_value=0) > 0
        counted = np.where(gone | met, service["target_accuracy"], accuracy[rows.index])
        left = round(service.get("total_budget", 10**9) * MICRO) - rows.spent.cumsum().shift(fill_value=0)
        parts.append(
            pd.DataFrame(
                {
                    "status": np.select([waits, gone, met], ["waiting", "left", "reached"], "training"),
                    "reward": np.where(waits, 0.0, service["reward_base"] ** counted),
                    "budget": np.where(waits, 0, left.clip(upper=round(service["budget"] * MICRO))),
                    "dataset": service["dataset"],
                    "target_accuracy": service["target_accuracy"],
                    "policy": service["policy"] if run.meta["policy"] == "as-configured" else run.meta["policy"],
                },
                index=rows.index,
            )
        )
    return pd.concat(parts).sort_index()
