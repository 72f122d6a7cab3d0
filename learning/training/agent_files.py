"""The files of an agent, and the states of its training to resume from.

``NAME.safetensors``, ``.json``  the agent: named arrays, and everything else
``NAME.training/``               the last states of its training. No times: a resume gives the bytes
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from pydantic import TypeAdapter, ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save

from fl.arrays import AnyArray
from flmarket.core.errors import InputError
from flmarket.core.files import read_regular, remove_unfinished, replacing
from learning.policy import LARGEST_AGENT

VERSION = 2  # version of the format and of what the networks see. An agent of another version is refused.

TENSORS, DESCRIPTION = ".safetensors", ".json"

TRAINING = "training"  # the kind of a training's state

_OWN = "description_sha256"  # the key of the digest of a state's description, which is that without it

KEPT = 2  # states kept: the last one, to resume from, and the one before it, in case the last one has to be deleted

GROWS = ("episodes", "epsilon_episodes")
"""Parts of the plan that may change when a training is resumed. A longer training explores no longer than planned."""

Tensors = Mapping[str, AnyArray]  # named arrays: what agents and saved states hold

S = TypeVar("S")


class CheckpointError(InputError):
    """A checkpoint cannot be used; the message says which file, why, and what to do."""


def place(out: Path, seed: int, seeds: Sequence[int]) -> Path:
    """Return the file of one seed's agent: ``out`` with the suffix that agents have, numbered if there are several."""
    if out.name in ("", ".."):
        raise InputError(f"out {str(out)!r}: must name a file, NAME{TENSORS}")
    stem = out.with_suffix("") if out.suffix in (TENSORS, DESCRIPTION) else out
    return stem.with_name(f"{stem.name}-seed{seed}{TENSORS}" if len(seeds) > 1 else f"{stem.name}{TENSORS}")


# Two files that belong together: the description is written last, and holds the SHA-256 of the tensors. Both are
# written durably, so that a kill leaves the old file or the new one. No pickle, ever.


def write(
    path: Path,  # file of the tensors, ``NAME.safetensors``; the description goes to ``NAME.json``
    kind: str,  # ``agent`` or ``TRAINING``
    tensors: Tensors,
    description: Mapping[str, Any],  # everything else; must be what JSON can hold
) -> None:
    content = save({name: np.ascontiguousarray(values) for name, values in tensors.items()})
    header = {"flmarket": kind, "version": VERSION, "sha256": hashlib.sha256(content).hexdigest()}
    described = {**header, **description}
    if kind == TRAINING:  # an agent's is part of its ``digest``, which whoever plays it records
        described |= {_OWN: _digest(described)}
    replace_file(path, content)
    replace_file(path.with_suffix(DESCRIPTION), as_json(described))


def read(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the tensors and the description of an agent or of a training's state."""
    if path.suffix != TENSORS:
        raise CheckpointError(f"{path}: is not an agent (.safetensors); train one with flmarket train")
    described = path.with_suffix(DESCRIPTION)
    try:
        content = read_regular(path, LARGEST_AGENT if kind == "agent" else None)  # a state holds transitions, too
        description = json.loads(read_regular(described))
    except OSError as error:
        raise CheckpointError(
            f"{error.filename}: cannot be read: {error.strerror}; train one with flmarket train"
        ) from error
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{described}: is not valid JSON: {error}; restore it or train again") from error
    if not isinstance(description, dict) or description.get("flmarket") != kind:
        raise CheckpointError(f"{described}: does not describe a checkpoint of kind {kind!r}")
    if (version := description.get("version")) != VERSION:
        raise CheckpointError(
            f"{described}: has version {version}, but this flmarket reads version {VERSION}; train again"
        )
    if kind == TRAINING and description.pop(_OWN, None) != _digest(description):
        raise CheckpointError(
            f"{described}: checksum mismatch: it is damaged, or of an earlier version; remove it to resume from the "
            "state before"
        )
    if hashlib.sha256(content).hexdigest() != description.get("sha256"):
        raise CheckpointError(
            f"{path}: checksum mismatch: {described.name} describes another file (this one is truncated, corrupt or of "
            "another training); restore both or train again"
        )
    try:
        return load_tensors(content), description
    except SafetensorError as error:
        raise CheckpointError(f"{path}: holds no arrays: {error}; restore it or train again") from error


def _digest(description: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a description as it reads after it was written."""
    return hashlib.sha256(json.dumps(json.loads(as_json(description)), sort_keys=True).encode()).hexdigest()


def as_json(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(dict(content), indent=1) + "\n").encode()


def replace_file(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(content)
        remove_unfinished(path)
    except OSError as error:
        raise CheckpointError(f"{error.filename or path}: cannot be written: {error.strerror}") from error


# Agents, as they are played.


def shipped(policy: str) -> Path:
    """Return the file of the agent that comes with flmarket for a learned policy; its JSON file names its origin."""
    return Path(str(files("learning") / "agents" / f"{policy}{TENSORS}"))


def _path(checkpoint: str | Path | None, policy: str) -> Path:
    return Path(checkpoint) if checkpoint else shipped(policy)


def digest(checkpoint: str | Path | None, policy: str = "") -> str:
    """Return the SHA-256 of all that decides how an agent plays, part of the hash of runs; arguments as ``load``."""
    _, description = read(_path(checkpoint, policy), "agent")
    decides = json.dumps({key: description.get(key) for key in ("settings", "agents", "sha256")}, sort_keys=True)
    return hashlib.sha256(decides.encode()).hexdigest()


def load(
    checkpoint: str | Path | None,  # file of ``flmarket train``; if None, the agent that comes with flmarket
    policy: str,  # name of the policy that is to play it
    service: str,  # name of the service that it decides for
    kind: type[S],  # class of its settings
    shapes: Callable[[S], Mapping[str, tuple[int, ...]]],  # returns those of its networks' parameters, by name
) -> tuple[S, dict[str, Any]]:
    """Return an agent's settings and its networks, by name; settings that the class does not have are ignored."""
    path = _path(checkpoint, policy)
    tensors, description = read(path, "agent")
    if description.get("policy") != policy:
        raise CheckpointError(f"{path}: holds an agent of policy {description.get('policy')!r}, not {policy!r}")
    names = description.get("agents")
    if names is not None:  # one for each service, stacked
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise CheckpointError(f"{path.with_suffix(DESCRIPTION)}: agents: must be a list of names; train again")
        if service not in names:
            raise CheckpointError(f"{path}: has agents for {', '.join(names)}, but none for service {service!r}")
        agent = names.index(service)
        tensors = {name: np.atleast_2d(values)[agent : agent + 1] for name, values in tensors.items()}
    try:
        settings = TypeAdapter(kind).validate_python(description.get("settings"))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, ("settings", *first["loc"])))
        raise CheckpointError(
            f"{path.with_suffix(DESCRIPTION)}: {where}: {first['msg']}; restore it or train again"
        ) from error
    wanted = {name: (shape, np.dtype(np.float32)) for name, shape in shapes(settings).items()}
    if {name: (values.shape, values.dtype) for name, values in tensors.items()} != wanted:
        raise CheckpointError(f"{path}: does not hold the networks of its settings; restore both or train again")
    return settings, tensors


# States of a training, to resume from.


def write_state(
    out: Path,  # file of the agent
    tensors: Tensors,  # what later learning depends on
    identity: Mapping[str, Any],  # what must be the same when the training is resumed
    episode: int,
    curve: Sequence[Mapping[str, Any]],  # evaluations until then
) -> None:
    """Save a state, and delete all but the last ones."""
    path = folder_of(out) / f"episode-{episode:06d}{TENSORS}"
    write(path, TRAINING, tensors, {**identity, "episode": episode, "curve": curve})
    for old in _states(out)[KEPT:]:
        old.with_suffix(DESCRIPTION).unlink(missing_ok=True)
        old.unlink(missing_ok=True)


def restore_last_state(
    out: Path, identity: Mapping[str, Mapping[str, Any]], restore: Callable[[Tensors], None]
) -> Mapping[str, Any] | None:
    """Restore the last state of a training; return its description, or None if there is no state."""
    if not has_state(out):
        return None
    path = _states(out)[0]
    tensors, description = read(path, TRAINING)
    for part, now in identity.items():
        before = description[part]
        for key in sorted(now.keys() | before.keys()):
            if key not in GROWS and now.get(key) != before.get(key):
                raise CheckpointError(
                    f"{path}: was trained with {part}.{key} = {before.get(key)!r}, not {now.get(key)!r}; "
                    "train into another file"
                )
    try:
        restore(tensors)
    except (LookupError, ValueError, TypeError) as error:
        raise CheckpointError(f"{path}: is no state of such a training: {error}; train into another file") from error
    return description


def has_state(out: Path) -> bool:
    """Return whether a training has a state to resume from."""
    return bool(_states(out))


def folder_of(out: Path) -> Path:
    """Return the folder of a training's states."""
    return out.with_suffix(".training")


def _states(out: Path) -> list[Path]:
    """Return the tensor files of complete states, the last one first: the JSON is written after the tensors."""
    described = sorted(folder_of(out).glob(f"episode-*{DESCRIPTION}"), reverse=True)
    return [path.with_suffix(TENSORS) for path in described]
