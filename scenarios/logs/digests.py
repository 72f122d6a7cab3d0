"""The digests of a run's files in meta.json, its own among them, so that damage to any of them is found.

The sizes and SHA-256 digests are no signature: anyone who can write the directory can write them, too. The contents of
the logs are checked by ``flmarket verify``; ``flmarket verify --rerun`` checks that the scenario leads to them.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

_FILES = "files"
_SELF = "sha256"

_DIGESTS = {str: str}
_SHAPE: Mapping[Any, Any] = {
    "scenario": str, "hash": str, "policy": str, "seed": int, "sweep": {str: object}, "point": int,
    "versions": {"flmarket": str}, "fits": {str: {str: float}}, "labels": {str: int},
    "data": {str: {"official": bool, "sha256": _DIGESTS}}, "agents": _DIGESTS,
    "plugins": {str: {"file": str, "sha256": str}}, _FILES: {str: {"size": int, "sha256": str}},
    "kernel": {str: str}, "rounds": int, "wall_seconds": float,
}  # fmt: skip
"""The type of each value of a complete run that is read; where keys are names, that of each of their values."""
_OPTIONAL = {"hashed": str, "partition": _DIGESTS, "availability": {"sha256": str}, "devices": {"sha256": str}}


def records(folder: Path, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the size and digest of each file that is there, by its name."""
    return {name: _record(folder / name) for name in names if os.path.lexists(folder / name)}


def seal(files: Mapping[str, Any], meta: Mapping[str, Any]) -> bytes:
    """Return the content of meta.json: ``meta``, the ``records`` of the run's other files, and its own digest."""
    body = {**meta, _FILES: files, _SELF: ""}
    # What stands inside keeps its order: the keys of a sweep that of their file.
    blank = (json.dumps({key: body[key] for key in sorted(body)}, indent=2) + "\n").encode()
    return blank.replace(_line(""), _line(hashlib.sha256(blank).hexdigest()))


def unseal(content: bytes) -> dict[str, Any]:
    """Return what meta.json records."""
    try:
        meta = json.loads(content)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(meta, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004 - of the content, not of an argument
    found = meta.pop(_SELF, None)
    # To the byte: lines in another order mean the same, and are damage all the same.
    if not isinstance(found, str) or hashlib.sha256(content.replace(_line(found), _line(""))).hexdigest() != found:
        raise ValueError("checksum mismatch")
    return meta


def misshapen(meta: Mapping[str, Any]) -> str | None:
    """Return what the meta.json of a complete run lacks, or has of another type; None if there is nothing."""
    shape = {**_SHAPE, **{key: each for key, each in _OPTIONAL.items() if key in meta}}
    return next(_misshapen(meta, shape, "it"), None)


def _misshapen(value: object, shape: Any, at: str) -> Iterator[str]:
    """Yield what is not of the type that it should be."""
    if isinstance(shape, type):
        numbers = (int, float) if shape is float else shape
        if not isinstance(value, numbers) or (isinstance(value, bool) and shape in (int, float)):
            yield f"{at} is not of type {shape.__name__}"
    elif not isinstance(value, dict):
        yield f"{at} is not a table"
    else:
        for key, each in shape.items():
            if key is str:
                for name, item in value.items():
                    yield from _misshapen(item, each, name)
            elif key not in value:
                yield f"{at} has no {key}"
            else:
                yield from _misshapen(value[key], each, key)


def damage(
    folder: Path,  # the run's directory
    names: Iterable[str],  # the files that a complete run has
    meta: Mapping[str, Any],  # what ``unseal`` returned
    *,
    growing: str,  # the one file that may have grown since; what was there then must be as it was
    digests: bool,  # compare the contents, not the sizes alone
) -> Iterator[str]:
    """Yield a sentence for each file that is not what meta.json records."""
    records = meta[_FILES]
    for name in names:
        if name not in records:
            yield f"{folder / name}: is not recorded in meta.json"
            continue
        size = records[name]["size"]
        try:
            found = os.lstat(folder / name).st_size
            if found < size or (found > size and name != growing):
                yield f"{folder / name}: is damaged: it has {found:,} bytes, not {size:,}"
            elif digests and _sha256(folder / name, size) != records[name]["sha256"]:
                yield f"{folder / name}: is damaged: checksum mismatch"
        except FileNotFoundError:
            yield f"{folder / name}: is missing"
        except OSError as error:
            yield f"{folder / name}: cannot be read: {error.strerror}"


def _record(path: Path) -> dict[str, Any]:
    size = os.lstat(path).st_size
    return {"size": size, "sha256": _sha256(path, size)}


def _sha256(path: Path, size: int) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while size and (block := file.read(min(1 << 20, size))):
            digest.update(block)
            size -= len(block)
    return digest.hexdigest()


def _line(digest: str) -> bytes:
    """Return the line of meta.json's own digest, which is that of the file without it. Nested keys stand further in."""
    return f'\n  "{_SELF}": "{digest}"'.encode(errors="replace")
