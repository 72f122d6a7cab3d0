"""``flmarket verify --rerun``: play a run again and compare the bytes."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from flmarket.core.errors import InputError
from flmarket.core.tracking import counting
from scenarios.build import Shelf, agents_of, kernels_of, recorded_of
from scenarios.file.client_files import require_same_files
from scenarios.file.schema import Scenario
from scenarios.loader import parse
from scenarios.logs.columns import tables_in
from scenarios.logs.directory import SCENARIO, RunDirectory
from scenarios.plugin_files import require_same_plugins
from scenarios.running.batch_run import AfterRound, Callback, Run
from scenarios.running.pool import Pool
from scenarios.running.run_options import RunOptions
from scenarios.running.runner import execute


def rerun(
    run: RunDirectory,  # a complete run
    shelf: Shelf,  # gives the data sets
    *,
    workers: int = 1,  # training threads
    apart: bool = False,  # play it in a process of its own, which is then all that a plug-in can end
) -> list[str]:
    """Play a complete run again, and return how the files differ."""
    meta = run.meta()
    require_same_plugins(meta["plugins"], str(run.path))
    scenario = parse(run.scenario_text(), str(run.path / SCENARIO))
    require_repeatable(run, scenario, shelf)
    with tempfile.TemporaryDirectory(prefix="flmarket-") as folder:
        again = Run(scenario, meta["policy"], meta["seed"], RunDirectory(Path(folder)), meta["hash"], {})
        if apart:
            with Pool(1, RunOptions(workers=workers)) as pool:
                [(_, error)] = pool.play([again], Callback())
                if error is not None:
                    raise error
        else:
            with counting(f"{again.label} again", scenario.rounds) as step:
                execute(again, shelf, AfterRound(lambda report: step(report.round)), workers=workers)
        return list(_differences(run.path, again.directory.path))


def require_repeatable(run: RunDirectory, scenario: Scenario, shelf: Shelf) -> None:
    """Check that training would give the same bytes here as it gave to a complete run."""
    meta = run.meta()
    if scenario.training.device != "cpu":
        raise InputError(f"{run.path}: was trained on {scenario.training.device}; only CPU runs repeat byte for byte")
    require_same_inputs(run, scenario, shelf)
    for service, kernel in kernels_of(scenario, shelf).items():
        if (other := meta["kernel"].get(service)) != kernel:
            raise InputError(
                f"{run.path}: service {service!r} was trained in the arithmetic {other!r}, which is {kernel!r} here; "
                "only the same arithmetic repeats byte for byte (docs/reproducibility.md)"
            )


def require_same_inputs(run: RunDirectory, scenario: Scenario, shelf: Shelf) -> None:
    """Check that data, agents, trace and partition are those that a run was played with; arguments as above."""
    meta = run.meta()
    data = meta["data"]
    for name in recorded_of(scenario):
        if name not in data or data[name]["sha256"] != dict(shelf.get(name).digests):
            raise InputError(f"{run.path}: data set {name!r} is not the one with which the run was played")
    if agents_of(scenario) != meta["agents"]:
        raise InputError(f"{run.path}: a learned agent is not the one with which the run was played")
    require_same_files(scenario, meta, str(run.path))


def _differences(one: Path, other: Path) -> Iterator[str]:
    for name in (SCENARIO, *(table.path(one).name for table in tables_in(other).values())):
        first, second = ((path / name).read_bytes().splitlines() for path in (one, other))
        if first != second:
            line = next((n for n, pair in enumerate(zip(first, second, strict=False), 1) if pair[0] != pair[1]), None)
            where = f"from line {line} on" if line else f"in length: {len(first)} and {len(second)} lines"
            yield f"{name} differs from a new run's {where}"
