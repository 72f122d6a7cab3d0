"""A run to play, and what is told of it while it is played, here or elsewhere."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from des.log_records import ServiceReport
from flmarket.core.errors import RunError
from scenarios.file.differences import values_text
from scenarios.file.schema import Scenario
from scenarios.logs.directory import RunDirectory


@dataclass(frozen=True, slots=True)
class Run:
    """A run to play, and where its results go."""

    scenario: Scenario  # resolved, without a sweep; its services carry the policies that play
    policy: str  # the label of the policy that all services use (``PolicyChoice.label``), or ``as-configured``
    seed: int  # the seed of every random stream
    directory: RunDirectory  # where it goes
    digest: str  # hash8 of what the run depends on, besides seed and policy
    sweep: Mapping[str, Any]  # the values of the sweep point, by key
    point: int = 0  # the place of the sweep point in its scenario, from 0
    # what the scenario is called in messages and tables, where its name alone stands for several of the batch
    name: str | None = None
    # ``inputs_of`` when it was planned; None if files that have changed since are another's concern
    inputs: Mapping[str, str] | None = None
    hashed: str | None = None  # what ``digest`` is of, to be recorded (``scenarios.loader.hashed``)

    @property
    def group(self) -> str:
        """The name in tables of this run and those that differ from it in the seed alone."""
        return " ".join(filter(None, [self.name or self.scenario.name, values_text(self.sweep), f"({self.policy})"]))

    @property
    def label(self) -> str:
        return f"{self.group} seed {self.seed}"


Outcome = tuple[Run, RunError | None]
"""A run that is over, and what it failed with; None if it is complete."""


class Played(Protocol):
    """A round that is over: a ``RoundReport``, or of a run elsewhere what its files tell of its newest round."""

    @property
    def round(self) -> int: ...

    @property
    def services(self) -> Sequence[ServiceReport]: ...

    @property
    def last(self) -> bool:
        """Whether no further round follows."""


class Callback:
    """Told of runs while they are played; does nothing here. Called from one thread; several runs may be under way."""

    def begin_batch(self, runs: Sequence[Run], complete: Sequence[Run], jobs: int | None) -> None:
        """Runs are about to be played, so many at a time (None: not known); others were complete already."""

    def begin(self, run: Run, done: int) -> None:
        """A run's files are ready and hold so many rounds: the next one is about to be played."""

    def after_round(self, run: Run, report: Played) -> None:
        """A round is in a run's files. Of a run elsewhere it is the newest; those in between are passed over."""

    def end(self, run: Run, error: RunError | None) -> None:
        """A run is complete, or has failed, perhaps before it began. It does not end if it is interrupted."""

    def slow(self, run: Run | None, text: str) -> None:
        """A policy takes long to return; the run is None before the first one is played."""

    def wait(self) -> None:
        """Several times a second while runs play in other processes. What it raises ends the batch, which resumes."""


class Callbacks(Callback):
    """Several callbacks, told one after another."""

    def __init__(self, *callbacks: Callback) -> None:
        self._callbacks = callbacks

    def begin_batch(self, runs: Sequence[Run], complete: Sequence[Run], jobs: int | None) -> None:
        for callback in self._callbacks:
            callback.begin_batch(runs, complete, jobs)

    def begin(self, run: Run, done: int) -> None:
        for callback in self._callbacks:
            callback.begin(run, done)

    def after_round(self, run: Run, report: Played) -> None:
        for callback in self._callbacks:
            callback.after_round(run, report)

    def end(self, run: Run, error: RunError | None) -> None:
        for callback in self._callbacks:
            callback.end(run, error)

    def slow(self, run: Run | None, text: str) -> None:
        for callback in self._callbacks:
            callback.slow(run, text)

    def wait(self) -> None:
        for callback in self._callbacks:
            callback.wait()


class AfterRound(Callback):
    """A function that is called with each round."""

    def __init__(self, do: Callable[[Played], object]) -> None:
        self._do = do

    def after_round(self, run: Run, report: Played) -> None:
        self._do(report)
