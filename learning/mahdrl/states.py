"""States of a training: what a training is resumed from, and which states are refused."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from learning.mahdrl import checkpoint
from learning.mahdrl.checkpoint import CheckpointError
from learning.mahdrl.networks import Tensors

KEPT = 2  # states kept: the last one, to resume from, and the one before it, in case the last one has to be deleted

GROWS = ("episodes", "epsilon_episodes")
"""Parts of the plan that may change when a training is resumed. A longer training explores no longer than planned."""

_NAME = "episode-"


class Resumable(Protocol):
    """What has a state: a learner."""

    def state(self) -> Tensors:
        """Return everything that later learning depends on."""

    def restore(self, state: Tensors) -> None:
        """Continue from a ``state``; a ValueError says why it is none."""


@dataclass(frozen=True, slots=True)
class Found:
    """The description of a state that was found."""

    episode: int  # the last episode before it was saved
    curve: list[dict[str, Any]]  # evaluations until then
    log_bytes: int  # length of the log at that time
    epsilon_episodes: int  # how long the training was to explore when it was started
    identity: Mapping[str, Mapping[str, Any]]  # what must be the same when it is resumed

    @classmethod
    def read(cls, description: Mapping[str, Any], parts: Mapping[str, Any]) -> Self:
        """Read a state's description."""
        return cls(
            episode=_count(description["episode"]),
            curve=_curve(description["curve"]),
            log_bytes=_count(description["log_bytes"]),
            epsilon_episodes=_count(description["plan"]["epsilon_episodes"]),
            identity={part: dict(description[part]) for part in parts},
        )


def file_of(folder: Path, episode: int) -> Path:
    """Return the file of the state after an episode."""
    return folder / f"{_NAME}{episode:06d}{checkpoint.TENSORS}"


def is_there(folder: Path) -> bool:
    """Return whether a training's folder has a state to resume from."""
    return next(_states(folder), None) is not None


def resumed(
    learner: Resumable,  # a new one
    folder: Path,  # the training's states
    # what must be the same as when the state was saved, except for what ``GROWS``
    identity: Mapping[str, Mapping[str, Any]],
) -> Found | None:
    """Restore a learner from the last state in a folder; return its description, or None if the folder has no state."""
    path = next(_states(folder), None)
    if path is None:
        return None
    tensors, description = checkpoint.read(path, "training")
    try:
        found = Found.read(description, identity)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _damaged(path, repr(error)) from error
    if path != file_of(folder, found.episode):
        raise _damaged(path, f"it is that of episode {found.episode}")
    for part, now in identity.items():
        before = found.identity[part]
        for key in sorted(now.keys() | before.keys()):
            if key not in GROWS and now.get(key) != before.get(key):
                raise CheckpointError(
                    f"{path}: was trained with {part}.{key} = {before.get(key)!r}, not {now.get(key)!r}; "
                    "train into another --out"
                )
    _require_shapes(path, tensors, learner.state())
    try:
        learner.restore(tensors)
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    return found


def prune(folder: Path) -> None:
    """Delete all states but the last ones."""
    for path in list(_states(folder))[KEPT:]:
        path.with_suffix(checkpoint.DESCRIPTION).unlink(missing_ok=True)
        path.unlink(missing_ok=True)


def _damaged(path: Path, why: str) -> CheckpointError:
    described = path.with_suffix(checkpoint.DESCRIPTION)
    return CheckpointError(
        f"{described}: does not describe a state of a training: {why}; delete it and {path.name} to resume from the "
        "state before it, or from the start"
    )


def _require_shapes(path: Path, tensors: Tensors, own: Tensors) -> None:
    """Refuse tensors that are not a state of this learner; it may hold any number of transitions and earlier selves."""
    shapes = {}
    for name, values in own.items():
        shapes[name] = values.shape
        if name.startswith("replay.") and values.ndim > 1 and name in tensors:
            shapes[name] = (*values.shape[:1], *tensors[name].shape[1:2], *values.shape[2:])
    types = {name: values.dtype for name, values in own.items()}
    if kept := max((len(it) for name, it in tensors.items() if name.startswith("selves.") and it.ndim), default=0):
        for name, values in own.items():  # earlier selves are copies of what is played
            if name.startswith("played."):
                copies = f"selves.{name.removeprefix('played.')}"
                shapes[copies], types[copies] = (kept, *values.shape), values.dtype
    checkpoint.require_shapes(path, tensors, shapes)
    for name, type_ in types.items():
        if tensors[name].dtype != type_:
            raise CheckpointError(f"{path}: tensor {name!r} holds {tensors[name].dtype}, not {type_}")


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no number of episodes or bytes")
    return value


def _curve(value: object) -> list[dict[str, Any]]:
    known = {"episode", "auc", "reward", "markup"}
    if not isinstance(value, list) or not all(isinstance(point, dict) and point.keys() == known for point in value):
        raise ValueError("its curve is no list of evaluations")
    return value


def _states(folder: Path) -> Iterator[Path]:
    """Yield the tensor files of complete states, the last one first: the JSON is written after the tensors."""
    for described in sorted(folder.glob(f"{_NAME}*{checkpoint.DESCRIPTION}"), reverse=True):
        yield described.with_suffix(checkpoint.TENSORS)
