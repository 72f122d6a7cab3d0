"""Convert FedScale's trace of when phones are idle, charging and online to a file for `clients.availability`.

    python examples/fedscale_trace.py client_behave_trace --clients 1000 --out there.csv
    python examples/fedscale_trace.py client_behave_trace --rounds 80 --seconds 600 --clients 20 --out there.csv

The first makes a file in seconds, for continuous markets; the second one in rounds, for slots.

The public file is a pickle of `{client: {"active": [...], "inactive": [...], "finish_time": ...}}`, in seconds: a
client is there from each time in `active` to the one at the same place in `inactive`, and all of it begins again at
`finish_time`. Anything but dictionaries, lists, numbers and text is refused, so nothing in the file is executed.
Source: Lai et al., "FedScale: benchmarking model and system performance of federated learning at scale", ICML 2022.
"""

import argparse
import csv
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import plain_pickle


def intervals(trace: dict[str, Any], rounds: int, seconds: float) -> list[tuple[int, int]]:
    """Return the first and last round of each stretch in which a client is there when rounds begin."""
    if not trace["finish_time"] > 0 or len(trace["active"]) != len(trace["inactive"]):
        raise ValueError("finish_time must be above 0, and active as long as inactive")
    now = np.fmod(np.arange(rounds) * seconds, trace["finish_time"])[:, None]
    there = ((np.array(trace["active"]) <= now) & (now <= np.array(trace["inactive"]))).any(axis=1)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], there, [False]]).astype(int)))
    return [(int(first) + 1, int(after)) for first, after in edges.reshape(-1, 2)]


def stays(trace: dict[str, Any]) -> list[tuple[float, float]]:
    """Return when the client comes and goes in the time that the trace has, in seconds; stays that touch are one."""
    if not trace["finish_time"] > 0 or len(trace["active"]) != len(trace["inactive"]):
        raise ValueError("finish_time must be above 0, and active as long as inactive")
    found: list[tuple[float, float]] = []
    for begin, end in sorted(zip(trace["active"], trace["inactive"], strict=True)):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        elif begin < end:
            found.append((begin, end))
    return found


def main() -> None:
    """Convert the file that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--rounds", type=int, help="how many; with them, the file is in rounds")
    parser.add_argument("--seconds", type=float, help="length of a round")
    parser.add_argument("--clients", type=int, help="clients to take, the first that are ever there; all if not given")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    rounds, seconds = arguments.rounds, arguments.seconds
    if (rounds is None) != (seconds is None):
        parser.error("--rounds and --seconds go together")
    if not all(given is None or given > 0 for given in (rounds, seconds, arguments.clients)):
        parser.error("--rounds, --seconds and --clients must be above 0")
    try:
        traces = plain_pickle.read(arguments.file)
        whole = traces.values()
        stretches = map(stays, whole) if rounds is None else (intervals(trace, rounds, seconds) for trace in whole)
        found = list(islice(filter(None, stretches), arguments.clients))
        with arguments.out.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["client", "from_second", "to_second"] if rounds is None else ["client", "from", "to"])
            writer.writerows((client, *stretch) for client, own in enumerate(found) for stretch in own)
    except OSError as error:
        parser.exit(2, f"{error.filename}: {error.strerror}\n")
    except (AttributeError, KeyError, TypeError, ValueError) as error:  # of a file that is something else
        parser.exit(2, f"{arguments.file}: is not FedScale's trace: {type(error).__name__}: {error}\n")
    print(f"{arguments.out}: {len(found)} clients")


if __name__ == "__main__":
    main()
