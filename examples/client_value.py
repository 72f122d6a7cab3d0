"""See what each client that served added to a service's accuracy: its training is replayed, leaving each out in turn.

    flmarket run quickstart --policy hqfa --out worth
    python examples/client_value.py worth/quickstart-.../hqfa/seed-0000 digits --rounds 3

A value is the service's accuracy after a round minus what it would have been without the client: the others train again
from the same global model. It says nothing of later rounds, is no Shapley value, and is noisy: one of 143 validation
images is 0.007. It takes real training, the data sets, and the arithmetic of the run.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from des.log_records import Outcome
from flmarket.analysis.verification.evidence import Logs
from scenarios.build import Shelf, build_federation
from scenarios.logs.directory import RunDirectory


def values(directory: Path, service: str, rounds: int) -> pd.DataFrame:
    """Return a line for each client that served a service in the first rounds of a run.

    Raises:
        SystemExit: the replayed training gives another accuracy than the log has.
    """
    logs = Logs.read_whole(RunDirectory(directory))
    own = [it for it in logs.scenario.services if it.name == service]
    federation = build_federation(logs.scenario.model_copy(update={"services": own}), logs.seed, Shelf(), workers=1)
    found = []
    for number in range(1, rounds + 1):
        offers = logs.offers_of(number, service)
        served = offers[offers["outcome"] == Outcome.SERVED]
        before, jobs, without = federation.state(), logs.jobs(number, served), []
        for left in range(len(jobs)):
            others = jobs[:left] + jobs[left + 1 :]
            if others:
                federation.train_round(number, others)
            without.append(federation.accuracy(service))
            federation.restore(before)
        if jobs:
            federation.train_round(number, jobs)
        accuracy = federation.accuracy(service)
        logged = logs.rounds_of(number).loc[service, "accuracy"]
        if f"{accuracy:.6f}" != f"{logged:.6f}":
            raise SystemExit(f"round {number}: replayed {accuracy:.6f}, logged {logged:.6f}; is this the same machine?")
        for row, other in zip(served.itertuples(), without, strict=True):
            found.append((number, row.client, row.dqi, row.paid / 1e6, accuracy - other))
    federation.close()
    return pd.DataFrame(found, columns=["round", "client", "dqi", "paid", "value"])


def main() -> None:
    """Print the values of the run that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("service")
    parser.add_argument("--rounds", type=int, required=True, help="the first so many rounds")
    arguments = parser.parse_args()
    found = values(arguments.run, arguments.service, arguments.rounds)
    print(found.to_string(index=False))
    for other in ("dqi", "paid"):
        print(f"correlation of value with {other}: {np.corrcoef(found.value, found[other])[0, 1]:+.2f}")


if __name__ == "__main__":
    main()
