"""The run that a fork starts from, and the checkpoint of it that the fork continues.

A fork is an ordinary run of a scenario with one more intervention. If its original has a checkpoint from before that
intervention, the fork's directory is made what it would be if the fork had been interrupted there; it resumes.
"""

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from flmarket.core.errors import InputError
from flmarket.core.files import write_durably
from scenarios.build import Shelf, build
from scenarios.loader import dumps, parse, settled
from scenarios.logs.columns import ALL_TABLES
from scenarios.logs.directory import CHECKPOINT, NOT_A_RUN, SCENARIO, RunDirectory, RunDirectoryError
from scenarios.logs.run_state import RunState
from scenarios.running.batch_run import Run
from scenarios.running.checkpoint import Checkpoint, candidates, save
from scenarios.running.runner import identity_of, meta_of


def original_of(directory: RunDirectory) -> Run:
    """Return the run that is in a directory: a complete one, or one that was interrupted after a checkpoint."""
    if directory.state is RunState.WAITING:
        raise InputError(f"{directory.path}: {NOT_A_RUN}")
    found: Mapping[str, Any] | None = None
    if directory.state is RunState.COMPLETE:
        found = directory.meta()
    elif (checkpoint := last_known(directory.path / CHECKPOINT)) is not None:
        found = checkpoint.identity
    if found is None:
        raise InputError(
            f"{directory.path}: {directory.unfinished()}; it can be forked when it is complete: resume it first"
        )
    scenario = parse(directory.scenario_text(), str(directory.path / SCENARIO))
    return Run(scenario, found["policy"], found["seed"], directory, found["hash"], {})


def last_known(folder: Path) -> Checkpoint | None:
    """Return the newest checkpoint in a folder that is whole, whatever run it belongs to."""
    return next(candidates(folder, {}), None)


def begin_fork(
    original: Run,  # the run; it may be under way
    fork: Run,  # the run to begin
    last: int,  # the last round that they share
    shelf: Shelf,  # gives the data sets
) -> int:
    """Let a fork that has not begun start from its original's newest checkpoint, if that can be had."""
    folder = fork.directory.path
    with fork.directory.locked():
        found = _newest(original, last, shelf)
        if found is None or any((folder / CHECKPOINT).glob("[0-9]*.json")):
            return 0
        checkpoint, tables = found
        fork.directory.prepare(dumps(settled(fork.scenario)))
        for name, content in tables.items():
            write_durably(ALL_TABLES[name].path(folder), content)
        kernel = {"kernel": checkpoint.identity["kernel"]}
        save(folder / CHECKPOINT, replace(checkpoint, identity=identity_of(meta_of(fork, shelf) | kernel)))
        return checkpoint.round


def _newest(original: Run, last: int, shelf: Shelf) -> tuple[Checkpoint, dict[str, bytes]] | None:
    """Return a run's newest checkpoint that a run can resume from here, up to a round, and its tables by name."""
    folder = original.directory.path
    if last_known(folder / CHECKPOINT) is None:
        return None
    setup = build(original.scenario, original.seed, shelf, workers=1)
    kernel = {"kernel": dict(setup.federation.kernels)}
    setup.federation.close()
    with suppress(InputError, OSError, ValueError):  # of another version, say: it is as if there were none
        for checkpoint in candidates(folder / CHECKPOINT, identity_of(meta_of(original, shelf) | kernel)):
            if 1 <= checkpoint.round <= last:
                return checkpoint, _tables(folder, checkpoint)
    return None


def require_same_rounds(tables: Mapping[str, bytes], original: RunDirectory) -> None:
    """Check that the rounds that a fork shares with its original are the same, byte for byte."""
    for name, content in tables.items():
        try:
            own = ALL_TABLES[name].path(original.path).read_bytes()[: len(content)]
        except OSError as error:
            raise RunDirectoryError(f"{original.path}: {name}.csv: cannot be read: {error.strerror}") from error
        if own != content:
            pairs = enumerate(zip(own.splitlines(), content.splitlines(), strict=False), start=1)
            line = next((number for number, (one, other) in pairs if one != other), len(own.splitlines()) + 1)
            raise InputError(
                f"{original.path}: cannot be continued here: line {line} of {name}.csv comes out differently; it was "
                "played by another version, in another arithmetic or on a GPU (docs/reproducibility.md); play it again "
                "here and fork that run"
            )


def _tables(folder: Path, checkpoint: Checkpoint) -> dict[str, bytes]:
    """Return what each table holds up to a checkpoint, by name; a ValueError if one is not what it was."""
    found = {}
    for name, mark in checkpoint.marks.items():
        content = ALL_TABLES[name].path(folder).read_bytes()[: mark.size]
        if (len(content), hashlib.sha256(content).hexdigest()) != (mark.size, mark.sha256):
            raise ValueError(f"{name}.csv: checksum mismatch")
        found[name] = content
    return found
