"""Run directories whose tables have other columns: whoever reads one says what to do, and none is continued."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from flmarket.analysis.dataframes import Results
from flmarket.analysis.results.export import export, export_parquet
from flmarket.analysis.results.run_results import read
from flmarket.analysis.verification.verify import verify
from scenarios.build import Shelf
from scenarios.loader import load
from scenarios.logs.directory import RunDirectory
from scenarios.logs.run_state import RunState
from scenarios.logs.table import TableError
from scenarios.logs.writing import Mark, TableWriter
from scenarios.running.batch_run import Run
from scenarios.running.planning import split_by_completion
from scenarios.running.runner import execute
from support.runs import planned, reseal
from tui.state.feeds import DirectoryFeed
from tui.state.watched_run import Session


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A complete run whose offers.csv lacks the column ``paid``."""
    scenario = load("scarce", ["rounds=2", "training.backend=surrogate"])
    execute(run := planned(scenario, tmp_path / "runs", "hqfa"), Shelf())
    path = run.directory.path / "offers.csv"
    pd.read_csv(path, dtype=str).drop(columns="paid").to_csv(path, index=False)
    reseal(run.directory.path)
    return run


def problem(run: Run) -> str:
    path = run.directory.path / "offers.csv"
    return f"{path}: does not have the columns of offers.csv (docs/logs.md); start the run over with the option fresh"


def parquet(run: Run, folder: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install 'flmarket[parquet]')")
    export_parquet([run.directory.path], folder / "all.parquet", "offers")


def resume(run: Run, _: Path) -> None:
    """A row with the present columns below a header without them would shift every value behind."""
    marks = {}
    for name in ("rounds", "offers", "events"):
        content = (run.directory.path / f"{name}.csv").read_bytes()
        marks[name] = Mark(len(content), hashlib.sha256(content).hexdigest())
    TableWriter(run.directory.path, marks)


@pytest.mark.parametrize(
    "look",
    [
        lambda run, folder: verify(run.directory),
        lambda run, folder: export([run.directory.path], folder / "all.csv", "offers"),
        lambda run, folder: read([run.directory.path])[0].income,
        lambda run, folder: Results([run.directory.path]).offers,
        lambda run, folder: split_by_completion([run]),  # `flmarket run` would skip it as complete
        parquet,
        resume,
    ],
    ids=["verify", "export", "report", "frames", "run", "parquet", "resume"],
)
def test_it_is_refused(look: Callable[[Run, Path], object], run: Run, tmp_path: Path) -> None:
    before = (run.directory.path / "offers.csv").read_bytes()
    with pytest.raises(TableError) as error:
        look(run, tmp_path)
    assert str(error.value) == problem(run)
    assert (run.directory.path / "offers.csv").read_bytes() == before
    assert not list(tmp_path.glob("*.parquet*"))


def test_replay_refuses_it(run: Run) -> None:
    session = Session("old")
    DirectoryFeed(session, run.directory.path).read()
    assert session.state is RunState.UNREADABLE
    assert problem(run) in (session.error or "")


def test_fresh_starts_it_over(run: Run) -> None:
    assert split_by_completion([run], fresh=True) == ([run], [])
    execute(run, Shelf(), fresh=True)
    assert verify(RunDirectory(run.directory.path)).problems == []
