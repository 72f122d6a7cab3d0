"""The options of batches and trainings, each declared once, and seeds as they are typed.

Commands, ``flmarket.run``, dialogs and checks follow the declarations. Light to import: the screens start with it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Annotated, Literal

from annotated_doc import Doc
from annotated_types import Ge, Le

from flmarket.core.declared import check
from flmarket.core.errors import InputError
from flmarket.core.installation import usable_cores

if TYPE_CHECKING:
    from scenarios.logs.directory import Fresh

LARGEST_SEED = 2**63 - 1  # of a run: what reads its logs holds whole numbers in 64 bits
MOST_SEEDS = 1_000_000  # that can be asked for at once

Place = str | PathLike[str]
StartOver = Annotated[bool, Doc("Start over, even if a run is complete.")]


@dataclass(frozen=True, kw_only=True)
class PlayOptions:
    """Options of whatever plays runs."""

    jobs: Annotated[int, Ge(1), Doc("Runs at a time, each in a process of its own.")] = 1
    workers: Annotated[int | None, Ge(0), Doc("Training threads of each run; cores divided by jobs if not given.")] = (
        None
    )
    fresh: StartOver = False

    def __post_init__(self) -> None:
        check(self, PlayOptions)

    @property
    def threads(self) -> int:
        return threads(self.jobs, self.workers)


@dataclass(frozen=True, kw_only=True)
class RunOptions(PlayOptions):
    """Options of a batch of runs, besides its scenarios, policies and seeds."""

    rounds: Annotated[int | None, Doc("Rounds to play, instead of the scenario's.")] = None
    backend: Annotated[str | None, Doc("Instead of the scenario's training.backend: real, surrogate, ...")] = None
    out: Annotated[Place, Doc("Folder for run directories.")] = "runs"
    fresh_changed: Annotated[bool, Doc("Start over where a policy, an agent or another plug-in has changed.")] = False
    part: Annotated[str | None, Doc("Play one part of the batch: 3/16 is the third of 16.")] = None
    fail_fast: Annotated[bool, Doc("End the batch when a run fails.")] = False
    decision_timeout: Annotated[
        float | None, Ge(0.001), Le(1_000_000), Doc("Seconds after which a policy that has not returned fails its run.")
    ] = None
    engine: Annotated[Literal["local", "ray"], Doc("This machine, or a Ray cluster.")] = "local"
    ray_address: Annotated[str | None, Doc("The Ray cluster; a local one is started if not given.")] = None

    def __post_init__(self) -> None:
        check(self, RunOptions)
        if self.fresh and self.fresh_changed:
            raise InputError("choose one of the options fresh, which starts all runs over, and fresh-changed")
        if self.part is not None and not 1 <= self._part[0] <= self._part[1]:
            raise InputError(f"part {self.part!r}: must be K/N with K from 1 to N, such as 3/16")
        if self.ray_address is not None and self.engine != "ray":
            raise InputError("only the engine ray takes the address of a Ray cluster")
        if self.decision_timeout is not None and self.engine == "ray":
            raise InputError(
                "the engine ray takes no decision timeout: a task cannot end a policy that hangs; play here, "
                "or cancel the task"
            )

    @property
    def _part(self) -> tuple[int, int]:
        found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", "1/1" if self.part is None else self.part)
        return (int(found[1]), int(found[2])) if found else (0, 0)

    @property
    def which(self) -> slice:
        """The places of the batch's runs that are played, in its order."""
        part, parts = self._part
        return slice(part - 1, None, parts)

    @property
    def values(self) -> dict[str, object]:
        """What takes the place of the scenarios' values, by key."""
        given = {"training.backend": self.backend, "rounds": self.rounds}
        return {key: value for key, value in given.items() if value is not None}

    @property
    def again(self) -> "Fresh":
        return "changed" if self.fresh_changed else self.fresh


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """Options of a training, besides its markets, its seed and the policy's hyper-parameters."""

    policy: Annotated[Literal["mahdrl", "mahdrl-paper"], Doc("The policy to train.")] = "mahdrl"
    episodes: Annotated[int, Ge(1), Doc("How often a market is played to learn from it.")] = 200
    rotate: Annotated[bool, Doc("Services take turns to learn, against the others' policies.")] = False
    together: Annotated[
        int,
        Ge(0),
        Doc("Where services take turns, those that learn in the same episode; 0: a number drawn for each."),
    ] = 1
    rivals: Annotated[
        Sequence[str],
        Doc("""Policies, NAME or NAME:CHECKPOINT, that non-learners draw from in each episode; itself: the agent as
        it was, after episode 160. If none is given: those of the scenario."""),
    ] = ()
    evaluate_every: Annotated[
        int, Ge(1), Doc("Episodes between two evaluations, each of which saves a state that can be resumed from.")
    ] = 25
    resume: Annotated[bool, Doc("Resume a training that was stopped or killed.")] = False
    workers: Annotated[int | None, Ge(0), Doc("Threads that train clients; all cores if not given.")] = None

    def __post_init__(self) -> None:
        check(self, TrainOptions)
        if self.together != 1 and not self.rotate:
            raise InputError("together is the number of services that learn in the same turn; add the option rotate")


def threads(jobs: int, wanted: int | None) -> int:
    """Return the training threads of each process: as many as are wanted, else the usable cores divided by jobs."""
    return max(1, usable_cores() // jobs) if wanted is None else wanted


def parse_seeds(text: str) -> list[int]:
    """Read ``--seeds``: ``10`` means 0 to 9; lists (``0,3,7``) and ranges (``0..9``) may be mixed."""
    if re.fullmatch(r"\d{1,6}", text.strip()):
        count = int(text)
        if count < 1:
            raise InputError("seeds: 0 asks for no run; a single number N means seeds 0 to N-1")
        return list(range(count))
    try:
        return _listed(text)
    except InputError as error:
        raise InputError(f"seeds {text!r}: {error}") from None


def _listed(text: str) -> list[int]:
    """Read seeds and ranges of seeds: ``3``, ``0, 3`` or ``0..4``, each once; a single number is a seed here."""
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})(?:\.\.(\d{1,9}))?\s*", part)
        if not match:
            raise InputError(f"{part.strip()!r} is neither a seed of at most nine digits (3) nor a range (0..9)")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise InputError(f"the range {part.strip()} runs backwards")
        if last - first >= MOST_SEEDS:
            raise InputError(f"the range {part.strip()} has more than {MOST_SEEDS:,} seeds")
        seeds += range(first, last + 1)
    return list(dict.fromkeys(seeds))
