"""Single runs that tests play, kill, read, and change by hand."""

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from des.log_records import RoundReport
from scenarios.build import Shelf
from scenarios.file.schema import Scenario
from scenarios.logs.columns import tables_in, tables_of
from scenarios.logs.directory import RunDirectory
from scenarios.logs.reading import round_spans
from scenarios.running.batch_run import AfterRound, Run
from scenarios.running.planning import plan
from scenarios.running.runner import execute

RESULTS = ("scenario.toml", "rounds.csv", "offers.csv", "events.csv")
"""The files of a run that must have the same bytes whenever it is played."""

Row = dict[str, str]

RECORDED = {
    "scenario": "hand", "hash": "00000000", "policy": "as-configured", "seed": 0, "sweep": {}, "point": 0,
    "versions": {"flmarket": "1.0"}, "data": {}, "labels": {}, "fits": {},
    "agents": {}, "plugins": {}, "kernel": {}, "rounds": 0, "wall_seconds": 0.0,
}  # fmt: skip
"""All that readers ask of the meta.json of a run besides its files and how it ended."""


def planned(scenario: Scenario, out: Path, policy: str | None = None, seed: int = 0) -> Run:
    """Return the one run of a scenario, with its own policies or with one for all."""
    [run] = plan([scenario], [policy] if policy else [], [seed], out, Shelf())
    return run


def played(scenario: Scenario, out: Path, policy: str | None = None, seed: int = 0) -> RunDirectory:
    """Play the one run of a scenario."""
    run = planned(scenario, out, policy, seed)
    execute(run, Shelf(), workers=0)
    return run.directory


def table(run: Path, name: str) -> list[Row]:
    """Return the rows of one of a run's tables."""
    with (run / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def edit(run: Path, name: str, how: Callable[[list[Row]], None]) -> None:
    """Change the rows of a table, and the digests, as one does who knows of them."""
    rows = table(run, name)
    how(rows)
    with (run / f"{name}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    reseal(run)


def change(run: Path, name: str, values: Mapping[str, str], where: Callable[[Row], bool] = lambda _: True) -> None:
    """Set values in the first row that fits."""
    edit(run, name, lambda rows: next(row for row in rows if where(row)).update(values))


class Killed(BaseException):
    """Stands for a process that is gone: nothing catches it."""


def interrupt(run: Run, shelf: Shelf, after: int) -> None:
    """Play a run up to a round, in which its process ends."""

    def kill(report: RoundReport) -> None:
        if report.round == after:
            raise Killed

    with pytest.raises(Killed):
        execute(run, shelf, AfterRound(kill), workers=0)


def reseal(path: Path) -> None:
    """Make meta.json record a run's files as they are now: as one does who changes logs and does not want it seen."""
    meta = json.loads((path / "meta.json").read_text())
    RunDirectory(path).finish({key: value for key, value in meta.items() if key not in ("files", "sha256")})


def round_text(report: RoundReport) -> dict[str, str]:
    """Return a round's lines of each table, as the files get them."""
    kinds = {"truthful": report.clients is None, "respond": bool(report.responses), "models": bool(report.models)}
    return {name: table.text(report) for name, table in tables_of(**kinds).items()}


def rounds_text(directory: Path) -> Iterator[dict[str, str]]:
    """Yield the lines of each round in a run directory whose last round is whole, as ``round_text`` returns them."""
    contents = {name: table.path(directory).read_bytes() for name, table in tables_in(directory).items()}
    spans = {name: round_spans(content) for name, content in contents.items()}
    for number in spans["rounds"]:
        yield {name: contents[name][slice(*found.get(number, (0, 0)))].decode() for name, found in spans.items()}
