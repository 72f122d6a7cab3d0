"""Files of agents and of saved states: named arrays in a safetensors file, everything else in a JSON file next to it.

The JSON is written last and holds the SHA-256 of the tensors: a pair of files either belongs together or is refused.
Both are written durably, so that a kill leaves the old file or the new one, never half of one. No pickle, ever.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save

from des.observation import Offer
from fl.arrays import FloatArray
from flmarket.core.errors import InputError
from flmarket.core.files import replacing
from flmarket.core.names import did_you_mean
from learning.mahdrl.networks import Tensors

VERSION = 2  # version of the format and of what the networks see. An agent of another version is refused.

TENSORS, DESCRIPTION = ".safetensors", ".json"


class CheckpointError(InputError):
    """A checkpoint cannot be used; the message says which file, why, and what to do."""


def write(
    path: Path,  # file of the tensors, ``NAME.safetensors``; the description goes to ``NAME.json``
    kind: str,  # ``agent`` or ``training``
    tensors: Tensors,  # arrays by name
    description: Mapping[str, Any],  # everything else; must be what JSON can hold
) -> None:
    content = save({name: np.ascontiguousarray(values) for name, values in tensors.items()})
    header = {"flmarket": kind, "version": VERSION, "sha256": hashlib.sha256(content).hexdigest()}
    text = json.dumps({**header, **description}, indent=1) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for file, written in ((path, content), (path.with_suffix(DESCRIPTION), text.encode())):
            with replacing(file) as opened:
                opened.write(written)
    except OSError as error:
        raise CheckpointError(f"{error.filename or path}: cannot be written: {error.strerror}") from error


def read(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the tensors and the description of a checkpoint."""
    if path.suffix != TENSORS:
        raise CheckpointError(f"{path}: is not an agent (.safetensors); train one with flmarket train")
    described = path.with_suffix(DESCRIPTION)
    try:
        content, description = path.read_bytes(), json.loads(described.read_bytes())
    except OSError as error:
        raise CheckpointError(
            f"{error.filename}: cannot be read: {error.strerror}; train one with flmarket train"
        ) from error
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{described}: is not valid JSON: {error}; restore it or train again") from error
    if not isinstance(description, dict) or description.get("flmarket") != kind:
        raise CheckpointError(f"{described}: does not describe a checkpoint of kind {kind!r}")
    if description.get("version") != VERSION:
        raise CheckpointError(
            f"{described}: has version {description.get('version')}, but this flmarket reads version {VERSION}; "
            "train again"
        )
    if hashlib.sha256(content).hexdigest() != description.get("sha256"):
        raise CheckpointError(
            f"{path}: checksum mismatch: {described.name} describes another file (this one is truncated, corrupt or of "
            "another training); restore both or train again"
        )
    try:
        return load_tensors(content), description
    except (SafetensorError, KeyError) as error:  # KeyError: NumPy has no such type
        raise CheckpointError(f"{path}: is not a safetensors file of flmarket: {error}") from error


def digest(checkpoint: str | Path | None, policy: str = "") -> str:
    """Return the SHA-256 of all that decides how an agent plays, part of the hash of runs; arguments as ``load``."""
    _, description = read(_path(checkpoint, policy), "agent")
    decides = json.dumps({key: description.get(key) for key in ("settings", "agents", "sha256")}, sort_keys=True)
    return hashlib.sha256(decides.encode()).hexdigest()


def shipped(policy: str) -> Path:
    """Return the file of the agent that comes with flmarket for a learned policy; its JSON file names its origin."""
    return Path(str(files("learning") / "agents" / f"{policy}{TENSORS}"))


def _path(checkpoint: str | Path | None, policy: str) -> Path:
    return Path(checkpoint) if checkpoint else shipped(policy)


@dataclass(frozen=True, slots=True)
class Trained:
    """A checkpoint that holds the agent of a service."""

    path: Path  # file of the tensors
    tensors: Mapping[str, Any]  # arrays by name; the first axis of each counts the agents
    description: Mapping[str, Any]  # the agent's JSON file
    agent: int  # index of the agent that decides for the service
    agents: int  # how many agents the checkpoint holds

    def settings(
        self,
        kind: Any,  # class of the settings of a training
        former: Mapping[str, object],  # switches that trainings no longer have, and the one value that can be played
    ) -> Any:
        """Return the hyper-parameters that the agent was trained with."""
        described, known = self.path.with_suffix(DESCRIPTION), [setting.name for setting in fields(kind)]
        found = self.description.get("settings")
        if not isinstance(found, Mapping):
            raise CheckpointError(f"{described}: has no settings; restore it or train again")
        for name in found.keys() - known:
            if name not in former:
                raise CheckpointError(
                    f"{described}: unknown setting {name!r} of {self.description['policy']}"
                    f"{did_you_mean(name, known)}; restore it or train again"
                )
            if found[name] != former[name]:
                raise CheckpointError(
                    f"{described}: was trained with {name} = {found[name]!r}, which this flmarket cannot play"
                )
        try:
            return TypeAdapter(kind).validate_python({name: found[name] for name in known if name in found})
        except ValidationError as error:
            first = error.errors()[0]
            raise CheckpointError(
                f"{described}: was trained with invalid settings: {'.'.join(map(str, first['loc']))}: {first['msg']}; "
                "train it again"
            ) from error

    def require_shapes(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Refuse tensors that are not those of the policy's networks."""
        found = {name: values.shape for name, values in self.tensors.items()}
        if found != dict(shapes):
            raise CheckpointError(
                f"{self.path}: holds {found}, not the networks of its settings, {dict(shapes)}; train it again"
            )


def load(
    checkpoint: str | None,  # file of ``flmarket train``; if None, the agent that comes with flmarket
    policy: str,  # name of the policy that is to play it
    service: str,  # name of the service
) -> Trained:
    """Read the agent that decides for a service."""
    path = _path(checkpoint, policy)
    tensors, description = read(path, "agent")
    if description.get("policy") != policy:
        raise CheckpointError(f"{path}: holds an agent of policy {description.get('policy')!r}, not {policy!r}")
    names = description.get("agents")
    if names is None:  # one agent for all services
        return Trained(path, tensors, description, agent=0, agents=1)
    if service not in names:
        raise CheckpointError(f"{path}: has agents for {', '.join(names)}, but none for service {service!r}")
    return Trained(path, tensors, description, agent=names.index(service), agents=len(names))


@dataclass(frozen=True, slots=True)
class Reasons:
    """A trained agent's decision and the numbers that it follows from, for explanations afterwards."""

    offer: Offer  # what was decided
    q: FloatArray  # [C] how the critic rates each client
    # [C] the chance to be served that the agent saw in an offer of the bid; None if it does not weigh that
    at_bid: FloatArray | None = None
    at_offer: FloatArray | None = None  # [k] the same for what it offered
