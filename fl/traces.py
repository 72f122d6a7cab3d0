"""Traces: what each round trained on and its outcome, recorded from any federation, one JSON file per run."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fl.arrays import AnyArray
from fl.errors import InputError
from fl.files import WriteError, write_durably
from fl.jobs import Federation, TrainingJob, TrainingOutcome


@dataclass(slots=True)
class Trace:
    """One service's run."""

    dataset: str  # name of its data set
    policy: str  # the policy that chose the clients
    seed: int  # the run's seed
    start: float  # test accuracy of the initial model
    # [rounds][jobs] of the clients that trained; a round may have none
    sizes: list[list[int]] = field(default_factory=list)
    emds: list[list[float]] = field(default_factory=list)
    losses: list[list[float]] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)  # [rounds] after each round


class Recorder(Federation):
    """A federation that forwards everything to another one and records a trace of each service."""

    def __init__(self, federation: Federation, traces: Mapping[str, Trace]) -> None:
        self._federation = federation
        self.traces = traces

    @property
    def kernels(self) -> Mapping[str, str]:
        return self._federation.kernels

    def accuracy(self, service: str) -> float:
        return self._federation.accuracy(service)

    def train_round(self, round_: int, jobs: Sequence[TrainingJob]) -> Mapping[str, TrainingOutcome]:
        outcomes = self._federation.train_round(round_, jobs)
        for service, trace in self.traces.items():
            own = [job for job in jobs if job.service == service]
            trace.sizes.append([job.size for job in own])
            trace.emds.append([job.emd for job in own])
            trace.losses.append(outcomes[service].losses.tolist() if own else [])
            trace.accuracies.append(self._federation.accuracy(service))
        return outcomes

    def state(self) -> dict[str, AnyArray]:
        return self._federation.state()

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        self._federation.restore(state)

    def close(self) -> None:
        self._federation.close()


def write(
    path: Path,  # the file; its folder is made
    traces: Iterable[Trace],  # those of one run
    key: Mapping[str, Any],  # what they depend on; ``read`` gives them back only for the same key
) -> None:
    """Write traces into one file, in one step: it is either whole or absent."""
    content = {"key": dict(key), "traces": [{name: getattr(t, name) for name in t.__slots__} for t in traces]}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(path.parent, error) from error
    write_durably(path, (json.dumps(content) + "\n").encode())


def read(path: Path, key: Mapping[str, Any]) -> list[Trace] | None:
    """Return the traces of a file, or None if there is no such file or it was made for another key."""
    if not path.exists():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        traces = [Trace(**entry) for entry in content["traces"]]
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise InputError(f"{path}: is not a file of traces: {error}; remove it, or choose another --out") from error
    return traces if content["key"] == json.loads(json.dumps(key)) else None
