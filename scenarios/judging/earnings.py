"""What served clients were paid, and what it cost them, read from a run's logs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from des.log_records import Outcome
from fl.arrays import BoolArray, FloatArray, IntArray
from flmarket.core.errors import InputError
from scenarios.judging.tables import read_table
from scenarios.logs.columns import CLIENTS
from scenarios.logs.directory import RunDirectory


@dataclass(frozen=True, slots=True)
class Earnings:
    """All offers of a run that were served, one entry for each. Money is in units."""

    service: IntArray  # [offers] index of the service
    client: IntArray  # [offers] index of the client
    paid: FloatArray  # [offers] what the client was paid
    cost: FloatArray  # [offers] what the work cost it; where clients are truthful, that is the bid
    missing: IntArray  # [offers] images that the client reported and did not have; negative if it had more
    misreported: BoolArray  # [offers] whether it reported other data than it had
    reported: IntArray  # [offers] images that it reported; not known, and 0, where clients are truthful

    @property
    def profit(self) -> FloatArray:
        """What the client was paid above its cost, [offers]."""
        return self.paid - self.cost


def read_earnings(run: RunDirectory, services: Sequence[str], clients: int) -> Earnings:
    interests = CLIENTS.path(run.path).exists()
    if interests:
        found = read_table(run, "clients")
        found = found[found["paid"].notna()]
    else:
        found = read_table(run, "offers", ["service", "client", "bid", "paid", "outcome"])
        found = found[found["outcome"] == Outcome.SERVED]
    name = "clients.csv" if interests else "offers.csv"
    client, paid = found["client"].to_numpy(), found["paid"].to_numpy(dtype=np.float64)
    cost = found["cost" if interests else "bid"].to_numpy(dtype=np.float64)
    service = found["service"].map({each: m for m, each in enumerate(services)}).to_numpy(dtype=np.float64)
    if not (np.isfinite(paid).all() and np.isfinite(cost).all() and ((client >= 0) & (client < clients)).all()):
        raise InputError(f"{run.path}: {name} pays a client that there is not, or no sum of money")
    if np.isnan(service).any():
        raise InputError(f"{run.path}: {name} has a service that is not the scenario's")
    if interests:
        size, reported = found["data_size"].to_numpy(), found["reported_size"].to_numpy()
        misreported = (size != reported) | (found["emd"] != found["reported_emd"]).to_numpy()
    else:
        size = reported = np.zeros(len(client), dtype=np.int64)
        misreported = np.zeros(len(client), dtype=np.bool_)
    return Earnings(service.astype(np.int64), client, paid, cost, reported - size, misreported, reported)
