"""Traces: what each round trained on and its outcome, recorded from any federation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fl.arrays import AnyArray
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
