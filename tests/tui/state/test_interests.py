"""Runs of clients that are not truthful, on screens: the bids are those of the run, and clients.csv is read, too."""

from pathlib import Path

import pytest

from des.behaviour import BEHAVIOURS
from scenarios.build import Shelf
from scenarios.loader import load, parse
from scenarios.logs.reading import RunReader
from scenarios.logs.run_state import RunState
from scenarios.running.planning import plan
from scenarios.running.runner import execute
from tui.screens.export_dialog import write_csv
from tui.state.feeds import DirectoryFeed
from tui.state.watched_run import Session


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    changes = ["rounds=8", "training.backend=surrogate", "clients.behaviour.kind=adaptive"]
    [run] = plan([load("scarce", changes)], ["hqfa"], [0], tmp_path_factory.mktemp("runs"), Shelf())
    execute(run, Shelf())
    return run.directory.path


@pytest.fixture
def growing(played: Path, tmp_path: Path) -> Path:
    """The same run as it is while another process plays it: without an end, cut in the middle of writing round 8."""
    folder = tmp_path / played.parent.parent.name / played.parent.name / played.name
    folder.mkdir(parents=True)
    for path in played.iterdir():
        if path.name != "meta.json":
            (folder / path.name).write_bytes(path.read_bytes())
    rounds = folder / "rounds.csv"  # which is written last
    rounds.write_bytes(rounds.read_bytes()[:-5])
    return folder


def read(path: Path) -> Session:
    session = Session("adaptive")
    DirectoryFeed(session, path).read()
    return session


def test_the_order_book_shows_what_clients_asked_whatever_round_is_looked_at(played: Path) -> None:
    session = read(played)
    assert session.state is RunState.COMPLETE
    assert session.scenario is not None
    names = [service.name for service in session.scenario.services]
    for number in (8, 2, 5, 1, 8):
        logged = session.history[number]
        book = session.book(logged)
        assert book is not None
        for offer in logged.offers:
            assert book.line(names.index(offer.service), offer.client).bid == offer.bid


def rounds_so_far(path: Path) -> int:
    """How many rounds of a growing run are shown."""
    services = len(parse((path / "scenario.toml").read_text()).services)
    rounds = list(RunReader(path).grow(services))
    assert all(text["clients"].count("\n") == text["offers"].count("\n") > 0 for text in rounds)
    return len(rounds)


def test_a_round_is_shown_when_all_of_its_tables_are_there(growing: Path, played: Path) -> None:
    assert rounds_so_far(growing) == 7
    (growing / "rounds.csv").write_bytes((played / "rounds.csv").read_bytes())
    assert rounds_so_far(growing) == 8


def test_clients_are_exported_as_they_were_logged(played: Path, tmp_path: Path) -> None:
    rows = write_csv(read(played), "clients", tmp_path / "clients.csv")
    lines = (played / "clients.csv").read_text().splitlines()
    assert rows == len(lines) - 1
    exported = (tmp_path / "clients.csv").read_text().splitlines()
    assert exported[0] == f"scenario,policy,seed,{lines[0]}"
    assert [line.split(",", 3)[3] for line in exported[1:]] == lines[1:]


def test_a_run_whose_behaviour_is_not_loaded_says_what_to_load(played: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bids cannot be known, so nothing is drawn."""
    builtin = {name: thing for name, thing in BEHAVIOURS._builtin.items() if name != "adaptive"}
    monkeypatch.setattr(BEHAVIOURS, "_builtin", builtin)
    session = read(played)
    assert session.state is RunState.UNREADABLE
    assert "unknown behaviour 'adaptive'" in (session.error or "")
