"""Checkpoints: named arrays in a safetensors file, everything else in a JSON file beside it. No pickle, ever.

The JSON is written last and holds the SHA-256 of the tensors: a pair of files either belongs together or is refused.
Both are written durably, so that a kill leaves the old file or the new one, never half of one.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from fl.errors import InputError
from fl.files import replacing
from fl.names import did_you_mean
from learning.mahdrl.networks import Tensors

VERSION = 2  # version of the format and of what the networks see. An agent of another version is refused.

FLOATS = ("quality", "count", "win", "actor", "critic")  # tensors of an agent's networks, which are in single precision

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
    digest = hashlib.sha256(content).hexdigest()
    header = {"flmarket": kind, "version": VERSION, "sha256": digest}
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
    content, text = _bytes(path), _bytes(described)
    try:
        description = json.loads(text)
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
        return load(content), description
    except SafetensorError as error:
        raise CheckpointError(f"{path}: is not a safetensors file: {error}") from error
    except KeyError as error:  # NumPy has no such type
        raise CheckpointError(
            f"{path}: holds numbers of type {error.args[0]}, which no training writes; restore it or train again"
        ) from error


def settings(path: Path, description: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the hyper-parameters that an agent was trained with."""
    found = description.get("settings")
    if not isinstance(found, Mapping):
        raise CheckpointError(f"{path.with_suffix(DESCRIPTION)}: has no settings; restore it or train again")
    return found


def digest(path: Path) -> str:
    """Return the SHA-256 of everything that decides how an agent plays, part of the hash of runs that use it."""
    _, description = read(path, "agent")
    decides = json.dumps({key: description.get(key) for key in ("settings", "agents", "sha256")}, sort_keys=True)
    return hashlib.sha256(decides.encode()).hexdigest()


def require_shapes(path: Path, tensors: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse tensors that do not fit a network."""
    if others := sorted(tensors.keys() - shapes.keys()):
        raise CheckpointError(f"{path}: tensor {others[0]!r} is of no network{did_you_mean(others[0], shapes)}")
    if missing := sorted(shapes.keys() - tensors.keys()):
        raise CheckpointError(f"{path}: tensor {missing[0]!r} is missing")
    for name, shape in shapes.items():
        if tensors[name].shape != shape:
            raise CheckpointError(f"{path}: tensor {name!r} has shape {tensors[name].shape}, not {shape}")
        if name in FLOATS and tensors[name].dtype != np.float32:
            raise CheckpointError(f"{path}: tensor {name!r} holds {tensors[name].dtype}, not float32")
        if not np.isfinite(tensors[name]).all():
            raise CheckpointError(f"{path}: tensor {name!r} holds values that are not finite")


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror}; train one with flmarket train") from error
