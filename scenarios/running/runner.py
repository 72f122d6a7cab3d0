"""One run: a scenario with one set of policies and one seed, played to its end into its run directory."""

import logging
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Self

from fl.data.registry import Dataset, info
from flmarket.core.errors import InputError, RunError
from flmarket.core.files import WriteError
from flmarket.core.installation import git_revision, versions
from flmarket.core.plugin_errors import PluginFailed, blame
from flmarket.core.plugin_options import OptionsError
from flmarket.core.plugins import PluginError
from learning.play_round import Stopped, play
from scenarios.build import (
    CreatePolicy,
    Setup,
    Shelf,
    agents_of,
    build,
    build_policy,
    datasets_of,
    dqi_parameters,
    fits_of,
    inputs_of,
    recorded_of,
)
from scenarios.file.client_files import records
from scenarios.loader import dumps, regimes_of, settled
from scenarios.logs.columns import tables_of
from scenarios.logs.directory import CHECKPOINT, LOG, ChangedError, Fresh, unwritable
from scenarios.logs.writing import Mark
from scenarios.plugin_files import plugins_of
from scenarios.running.batch_run import Callback, Callbacks, Played, Run
from scenarios.running.checkpoint import Checkpointer, resume


def execute(
    run: Run,  # what to run
    shelf: Shelf,  # gives the data sets
    callback: Callback = Callback(),  # noqa: B008 - it does nothing
    *,
    workers: int = 1,  # training threads; the results do not depend on it
    # start over what is there, complete or not; with ``changed``, only if its agents or plug-ins have changed, which
    # the caller has checked for a complete run
    fresh: Fresh = False,
    create: CreatePolicy = build_policy,  # creates each policy
    capture: bool = False,  # send what this process prints meanwhile into run.log
) -> None:
    """Play a run to its end and write its directory; one that was interrupted resumes from its last checkpoint.

    Raises:
        InputError, RunError: it cannot be played, or failed; whatever else is raised in it becomes a RunError.
    """
    _require_inputs(run, shelf)
    setup = partial(build, run.scenario, run.seed, shelf, workers=workers, create=create)
    with _told_the_end(run, callback), run.directory.locked():
        run.directory.prepare(dumps(settled(run.scenario)), fresh=fresh)
        with RunLog(run.directory.path / LOG) as log:
            log.info("start: %s, %d workers, Python %s", run.label, workers, platform.python_version())
            for name, data in _recorded(run, shelf):
                log.info("data set %s: %s", name, data.sizes)
            meta = meta_of(run, shelf) | {"started": datetime.now(UTC).isoformat(timespec="seconds")}
            try:
                with _captured(run.directory.path / LOG) if capture else nullcontext():
                    ending, tables = _play(run, setup, meta, log, callback, fresh)
                log.info("complete")
                run.directory.finish(meta | ending | {"status": "complete"}, tables)
            except (Exception, SystemExit) as error:
                message = message_of(error)
                log.exception("failed: %s", message, exc_info=not isinstance(error, InputError))
                with suppress(WriteError):  # the disk may be what failed
                    run.directory.finish(meta | {"status": "failed", "error": message})
                if isinstance(error, (InputError, RunError)):
                    raise
                raise PluginFailed(message) from error


@contextmanager
def _told_the_end(run: Run, callback: Callback) -> Iterator[None]:
    try:
        yield
    except RunError as error:
        callback.end(run, error)
        raise
    callback.end(run, None)


def _require_inputs(run: Run, shelf: Shelf) -> None:
    """Check that files are as they were when the run was planned: its directory is named by their digests."""
    if run.inputs is None or (here := inputs_of(run.scenario, shelf)) == run.inputs:
        return
    changed = min(name for name in {*here, *run.inputs} if here.get(name) != run.inputs.get(name))
    name, _, array = changed.rpartition("/")
    if name in recorded_of(run.scenario) and shelf.get(name).info.source == "plug-in":
        raise InputError(
            f"data set {name!r}: its function returns other {array} than when the batch was planned; "
            "it must return the same in every process: draw from np.random.default_rng(0), say, not without a seed"
        )
    raise InputError(
        f"{changed} on {platform.node()} differs from what the batch was planned with; leave files as they are while a "
        "batch plays, and run the command again"
    )


def _play(
    run: Run, setup: Callable[[], Setup], meta: dict[str, Any], log: "RunLog", callback: Callback, fresh: Fresh
) -> tuple[dict[str, Any], dict[str, Mark]]:
    """Play what is left of the run; return what meta.json records of its end, and what its tables hold."""
    folder = run.directory.path / CHECKPOINT
    clock = time.perf_counter()
    try:
        parts = setup()
    except (PluginError, OptionsError) as error:
        raise RunError(str(error)) from error  # it could be created when that was tried
    with closing(parts.federation):
        meta["kernel"] = dict(parts.federation.kernels)
        identity, own = identity_of(meta), tables_of(**run.scenario.logged)
        try:
            tables, checkpoint = resume(folder, identity, parts, own, log.warning)
        except ChangedError:
            if not fresh:
                raise
            run.directory.drop_checkpoints()
            tables, checkpoint = resume(folder, identity, parts, own, log.warning)
        earlier = checkpoint.seconds if checkpoint else 0.0

        def seconds() -> float:
            return earlier + time.perf_counter() - clock

        with tables:
            saves = Checkpointer(folder, parts, tables, identity, seconds)
            told = Callbacks(log, saves, callback)
            told.begin(run, checkpoint.round if checkpoint else 0)
            try:
                play(
                    parts.market, parts.policies, [tables, partial(told.after_round, run)], prepare=parts.seats.prepare
                )
            except Stopped:
                saves.save()
                raise
            written = tables.sync()  # before meta.json records that they are complete
    return {"rounds": parts.market.round, "wall_seconds": round(seconds(), 3)}, written


def message_of(error: BaseException) -> str:
    """Return what an exception that ended a run says to the user; one that is no error of flmarket's names its type."""
    return str(error) if isinstance(error, (RunError, InputError)) else blame(error)


@contextmanager
def _captured(path: Path) -> Iterator[None]:
    """Send what this process prints, its compiled code too, to the end of a file meanwhile."""
    log = os.open(path, os.O_WRONLY | os.O_APPEND)
    kept = [(number, os.dup(number)) for number in (1, 2)]
    try:
        _flush()
        for number, _ in kept:
            os.dup2(log, number)
        yield
    finally:
        _flush()  # before meta.json records the file
        for number, before in kept:
            os.dup2(before, number)
            os.close(before)
        os.close(log)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # a plug-in may have closed or replaced it; the disk may be full
            stream.flush()


class _LogFile(logging.FileHandler):
    """A log file that may lose a line on a full disk: the tables' own errors are what ends a run."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Drop the line."""


class RunLog(logging.Logger, Callback):
    """The run's own log file. Not in logging's registry: two runs in one process never share it."""

    def __init__(self, path: Path) -> None:
        super().__init__("flmarket.run", logging.INFO)
        try:
            handler = _LogFile(path, encoding="utf-8")
        except OSError as error:
            raise unwritable(path, error) from error
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        self.addHandler(handler)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for handler in self.handlers:
            with suppress(OSError):
                handler.close()

    def begin(self, run: Run, done: int) -> None:
        """Record where a run continues."""
        if done:
            self.info("continue after round %d", done)

    def after_round(self, run: Run, report: Played) -> None:
        """Record how the services stand."""
        services = ", ".join(f"{row.service} {row.accuracy:.4f} ({row.status})" for row in report.services)
        self.info("round %d: %s", report.round, services)


def identity_of(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run must share with the checkpoint that it resumes from, given what meta.json is to record."""
    identity = {key: meta[key] for key in ("hash", "policy", "seed", "versions", "kernel", "agents")}
    return identity | {"plugins": {thing: record["sha256"] for thing, record in meta["plugins"].items()}}


def _recorded(run: Run, shelf: Shelf) -> Iterator[tuple[str, Dataset]]:
    """Yield the data sets of a run whose images decide it, by name."""
    yield from ((name, shelf.get(name)) for name in recorded_of(run.scenario))


def meta_of(run: Run, shelf: Shelf) -> dict[str, Any]:
    """Return what meta.json records of a run before it is played; ``kernel`` is added when its federation is built."""
    return {
        "scenario": run.scenario.name,
        "hash": run.digest,
        **({} if run.hashed is None else {"hashed": run.hashed}),
        "policy": run.policy,
        "seed": run.seed,
        "sweep": dict(run.sweep),
        "point": run.point,
        "versions": versions(),
        "backend": run.scenario.training.backend,
        "training": {
            chosen.dataset: asdict(chosen.regime) | {"from": dict(chosen.origins)}
            for chosen in regimes_of([run.scenario])
        },
        "fits": {f"{fit.kind}/{fit.dataset}": dict(fit.parameters) for fit in fits_of(run.scenario)},
        "dqi": {
            name: {"from": run.scenario.dqi, **asdict(dqi_parameters(run.scenario.dqi, name))}
            for name in datasets_of(run.scenario)
        },
        "device": run.scenario.training.device,
        "machine": {"system": platform.system(), "processor": platform.machine()},
        "data": {
            name: {"official": data.official, "sha256": dict(data.digests)} for name, data in _recorded(run, shelf)
        },
        "images": {name: {**data.images, "unused": dict(data.unused)} for name, data in _recorded(run, shelf)},
        "labels": {name: info(name).labels for name in datasets_of(run.scenario)},
        "agents": agents_of(run.scenario),
        "plugins": plugins_of(run.scenario),
        **records(run.scenario),
        "git": git_revision(),
    }
