"""The rounds that a run shares with its forks: played once, kept, and given to each fork as its checkpoint.

OUT/.shared/<scenario>-<hash8>/<policy>/<seed>/<round>/   the tables up to a round, and checkpoint/ after it
A fork is an ordinary run of a scenario with one more intervention. What is placed in its directory is what would be
there if it had been interrupted before that intervention; it resumes from there. The folder can be removed at any time.
"""

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fl.errors import InputError
from fl.files import read_own, write_durably
from learning.play import Observer, play
from scenarios.build import CreatePolicy, Shelf, build, build_policy
from scenarios.loader import dumps, parse, settled
from scenarios.logs.columns import ALL_TABLES
from scenarios.logs.directory import CHECKPOINT, META, SCENARIO, RunDirectory, RunDirectoryError, State
from scenarios.logs.table import Table
from scenarios.logs.writing import TableWriter
from scenarios.running.checkpoint import Checkpoint, candidates, resumable, save, tables_for
from scenarios.running.runner import Run, identity_of, meta_of

SHARED = ".shared"


@dataclass(frozen=True, slots=True)
class Prefix:
    """The first rounds of a run.

    Attributes:
        folder: holds the tables, which may have later rounds, too.
        checkpoint: the state after them, and how far the tables are theirs.
        played: the rounds that had to be played for it.
    """

    folder: Path
    checkpoint: Checkpoint
    played: int = 0

    @property
    def rounds(self) -> int:
        """How many rounds it has."""
        return self.checkpoint.round

    def tables(self) -> dict[str, bytes]:
        """Return what each table holds of these rounds, by name.

        Raises:
            ValueError: a table is not what it was.
            OSError: one cannot be read.
        """
        found = {}
        for name, mark in self.checkpoint.marks.items():
            content = read_own(ALL_TABLES[name].path(self.folder))[: mark.size]
            if (len(content), hashlib.sha256(content).hexdigest()) != (mark.size, mark.sha256):
                raise ValueError(f"{name}.csv: checksum mismatch")
            found[name] = content
        return found


def shared_rounds(
    original: Run,
    last: int,
    shelf: Shelf,
    *,
    out: Path,
    workers: int = 1,
    observers: Iterable[Observer] = (),
    playing: Callable[[int], None] = lambda _: None,
    create: CreatePolicy = build_policy,
) -> Prefix | None:
    """Return the first rounds of a run; those that no checkpoint holds are played, and kept.

    Args:
        original: the run. Its directory is only read: a checkpoint in it is used.
        last: the last round that is wanted, at least 1.
        shelf: gives the data sets.
        out: the folder of the forks, in which the rounds are kept.
        workers: training threads.
        observers: get the report of every round that is played.
        playing: called before rounds are played, with the number of the first.
        create: creates each policy.

    Returns:
        the rounds, or None if a policy cannot be saved: each fork must then be played from its start.

    Raises:
        InputError, RunError: as in ``scenarios.running.runner.execute``.
    """
    setup = build(original.scenario, original.seed, shelf, workers=workers, create=create)
    try:
        if not resumable(setup):
            return None
        kernel = {"kernel": dict(setup.federation.kernels)}
        identity = identity_of(meta_of(original, shelf) | kernel)
        kept = _kept(out, original)
        found = newest(original, identity, last, out)
        if found is not None and found.rounds == last:
            return found
        place, own, clock = kept / str(last), tables_for(setup), time.perf_counter()
        with RunDirectory(place).locked(), _tables(place, found, own) as tables:
            if found is not None:
                found.checkpoint.apply(setup)
            begun = setup.market.round
            playing(begun + 1)
            play(setup.market, setup.policies, [tables, *observers], prepare=setup.seats.prepare, last=last)
            if not resumable(setup):
                return None
            seconds = time.perf_counter() - clock + (found.checkpoint.seconds if found else 0.0)
            taken = Checkpoint.take(setup, tables.sync(), identity, seconds)
            save(place / CHECKPOINT, taken)
        return Prefix(place, taken, last - begun)
    finally:
        setup.federation.close()


def newest(original: Run, identity: dict[str, object], last: int, out: Path) -> Prefix | None:
    """Return the most rounds of a run, up to ``last``, that a checkpoint holds: its own, or one that was kept."""
    kept = _kept(out, original)
    numbers = sorted((int(path.name) for path in kept.glob("[0-9]*") if path.name.isdecimal()), reverse=True)
    usable: list[Prefix] = []
    for folder in (original.directory.path, *(kept / str(number) for number in numbers if number <= last)):
        with suppress(InputError, OSError):  # of another version, say: it is as if there were none
            for checkpoint in candidates(folder / CHECKPOINT, identity):
                prefix = Prefix(folder, checkpoint)
                if 1 <= checkpoint.round <= last and _whole(prefix):
                    usable.append(prefix)
                    break
    return max(usable, key=lambda prefix: prefix.rounds, default=None)


def original_of(directory: RunDirectory) -> Run:
    """Return the run that is in a directory: a complete one, or one that was interrupted after a checkpoint.

    Raises:
        InputError: it is neither, or its scenario cannot be played here.
    """
    if directory.state is State.ABSENT:
        raise InputError(f"{directory.path}: not a run directory; a run directory has a scenario.toml and the tables")
    found: Mapping[str, Any] | None = None
    if directory.state is State.COMPLETE:
        found = directory.meta()
    elif (checkpoint := last_known(directory.path / CHECKPOINT)) is not None:
        found = checkpoint.identity
    if found is None:
        raise InputError(
            f"{directory.path}: {directory.unfinished()}; it can be forked when it is complete: resume it first"
        )
    scenario = parse(directory.scenario_text(), str(directory.path / SCENARIO))
    try:
        return Run(scenario, found["policy"], found["seed"], directory, found["hash"], {})
    except KeyError as error:
        raise InputError(f"{directory.path / META}: has no usable {error}; run again with --fresh") from error


def last_known(folder: Path) -> Checkpoint | None:
    """Return the newest checkpoint in a folder that is whole, whatever run it belongs to."""
    return next(candidates(folder, {}), None)


def place(prefix: Prefix, fork: Run, shelf: Shelf) -> None:
    """Make a fork's directory what it would be if the run had been interrupted after the rounds that it shares.

    Nothing is done to one that has begun.

    Raises:
        RunDirectoryError: it holds something else, or another process is playing it.
        WriteError: it cannot be written.
    """
    folder = fork.directory.path
    with fork.directory.locked():
        if any((folder / CHECKPOINT).glob("[0-9]*.json")):
            return
        fork.directory.prepare(dumps(settled(fork.scenario)))
        for name, content in prefix.tables().items():
            write_durably(ALL_TABLES[name].path(folder), content)
        identity = identity_of(meta_of(fork, shelf) | {"kernel": prefix.checkpoint.identity["kernel"]})
        save(folder / CHECKPOINT, replace(prefix.checkpoint, identity=identity))


def begin_fork(
    origin: Path,
    fork: Run,
    last: int,
    shelf: Shelf,
    *,
    fresh: bool,
    workers: int = 1,
    observers: Iterable[Observer] = (),
    create: CreatePolicy = build_policy,
) -> bool:
    """Place the rounds that a fork shares with its original in its directory, if they can be had.

    Args:
        origin: the original's directory; the run may be under way.
        fork: the run to begin.
        last: the last round that they share.
        shelf, workers, observers, create: see ``shared_rounds``.
        fresh: remove what is there of the fork.

    Returns:
        whether they are there. If not, the fork plays them itself, which takes longer and comes to the same.

    Raises:
        InputError: the fork's directory cannot be used.
        RunError: the run failed in these rounds.
    """
    try:
        original = original_of(RunDirectory(origin))
        out = fork.directory.path.parents[2]
        shared = shared_rounds(original, last, shelf, out=out, workers=workers, observers=observers, create=create)
    except (InputError, OSError):  # such as one that has no checkpoint yet, or that another fork is playing
        return False
    if shared is None:
        return False
    if fresh:
        with fork.directory.locked():
            fork.directory.prepare(dumps(settled(fork.scenario)), fresh=True)
    place(shared, fork, shelf)
    return True


def require_same_rounds(tables: Mapping[str, bytes], original: RunDirectory) -> None:
    """Check that the rounds that forks share are those of the run, byte for byte.

    Args:
        tables: what each table holds of these rounds, by name.
        original: the run.

    Raises:
        InputError: they are not, so that what differs afterwards would not come from the changes alone.
    """
    for name, content in tables.items():
        try:
            own = read_own(ALL_TABLES[name].path(original.path))[: len(content)]
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


def _kept(out: Path, run: Run) -> Path:
    """Return the folder that keeps the first rounds of a run."""
    return out / SHARED / f"{run.scenario.name}-{run.digest}" / run.policy / str(run.seed)


def _whole(prefix: Prefix) -> bool:
    try:
        prefix.tables()
    except (OSError, ValueError):
        return False
    return True


@contextmanager
def _tables(folder: Path, begun: Prefix | None, own: Mapping[str, Table]) -> Iterator[TableWriter]:
    """Open tables in a folder, in place of what is there, with the rounds that are known already."""
    for table in ALL_TABLES.values():
        table.path(folder).unlink(missing_ok=True)
    for name, content in begun.tables().items() if begun else ():
        write_durably(own[name].path(folder), content)
    with TableWriter(folder, begun.checkpoint.marks if begun else None, own) as tables:
        yield tables
