"""Run directories that tests write or change by hand, and runs that are killed."""

import json
from pathlib import Path

import pytest

from des.log_records import RoundReport
from scenarios.build import Shelf
from scenarios.logs.directory import RunDirectory
from scenarios.running.runner import Run, execute

RECORDED = {"versions": {"flmarket": "1.0"}, "kernel": {}, "agents": {}, "plugins": {}, "labels": {}, "sweep": {}}
"""What meta.json records of a run besides what names it and how it ended."""


class Killed(BaseException):
    """Stands for a process that is gone: nothing catches it."""


def interrupt(run: Run, shelf: Shelf, after: int) -> None:
    """Play a run up to a round, in which its process ends."""

    def kill(report: RoundReport) -> None:
        if report.round == after:
            raise Killed

    with pytest.raises(Killed):
        execute(run, shelf, workers=0, observers=[kill])


def reseal(path: Path) -> None:
    """Make meta.json record a run's files as they are now: as one does who changes logs and does not want it seen."""
    meta = json.loads((path / "meta.json").read_text())
    RunDirectory(path).finish({key: value for key, value in meta.items() if key not in ("files", "sha256")})
