"""A folder of runs: the state of each, read cheaply, and how long all will take."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import tui.state.run_standing
from des.log_records import ServiceReport
from scenarios.loader import dumps
from scenarios.logs.columns import TABLES
from scenarios.logs.directory import RunDirectory
from scenarios.logs.reading import RunReader
from support.runs import RECORDED
from tui.state.batch_folder import ORDERS, RunsFolder, grouped, ordered, run_directories
from tui.state.run_standing import standing
from tui.state.watched_run import Session

Play = Callable[..., Session]
LONG_AGO = 1_000_000_000


@pytest.fixture
def write(play_small: Play, tmp_path: Path) -> Callable[..., Path]:
    """``write("hqfa", 3, rounds=5)``: the directory of a run that was interrupted after round 5, long ago."""
    whole = play_small()

    def write(policy: str, seed: int, *, rounds: int = 12, status: str = "", error: str = "") -> Path:
        place = tmp_path / "runs" / "small-0a0b0c0d" / policy / f"seed-{seed:04d}"
        place.mkdir(parents=True)
        assert whole.scenario is not None
        (place / "scenario.toml").write_text(dumps(whole.scenario))
        for name, table in TABLES.items():
            rows = "".join(logged.text[name] for logged in list(whole.history)[:rounds])
            table.path(place).write_text(table.header + rows)
        (place / "run.log").touch()
        if status:
            RunDirectory(place).finish({**RECORDED, "status": status} | ({"error": error} if error else {}))
        for path in place.iterdir():
            os.utime(path, (LONG_AGO, LONG_AGO))
        return place

    return write


@contextmanager
def played(place: Path) -> Iterator[None]:
    """Hold a run's lock, as the process that plays it does."""
    with RunDirectory(place).locked():
        yield


@pytest.mark.usefixtures("just_now")
def test_the_state_of_each_run(write: Callable[..., Path], tmp_path: Path) -> None:
    write("complete", 0, status="complete")
    write("failed", 0, rounds=5, status="failed", error="policy 'x' failed\nto act in round 6")
    write("interrupted", 0, rounds=7)
    (write("damaged", 0, status="complete") / "events.csv").unlink()
    (write("unreadable", 0, status="complete") / "meta.json").write_text("[]")
    stopped = write("incomplete", 0, rounds=7)
    os.utime(stopped / "rounds.csv")  # just now
    begun = write("begun", 0, rounds=0)
    RunDirectory(tmp_path / "runs" / "small-0a0b0c0d" / "waiting" / "seed-0000").announce()
    with played(begun):
        look = RunsFolder(tmp_path / "runs").look()
    found = {run.standing.policy: run.standing for run in look.runs}
    assert {policy: run.state for policy, run in found.items()} == {
        **dict(zip(found, found, strict=True)),
        "begun": "running",
        "damaged": "unreadable",
    }
    assert found["failed"].problem == "policy 'x' failed to act in round 6"
    assert "events.csv" in found["damaged"].problem
    assert "is damaged" in found["unreadable"].problem
    assert (found["interrupted"].round, found["begun"].round) == (7, 0)
    assert found["complete"].result == "1 of 3 targets"
    assert 0 < (found["complete"].accuracy or 0) < 100
    assert {run.rounds for run in look.runs} == {12}


def test_a_run_whose_process_is_killed_is_interrupted_at_once(write: Callable[..., Path], tmp_path: Path) -> None:
    place = write("hqfa", 0, rounds=5)
    folder = RunsFolder(tmp_path / "runs")
    with played(place):
        os.utime(place / "rounds.csv")
        assert [run.standing.state for run in folder.look().runs] == ["running"]
    assert [run.standing.state for run in folder.look().runs] == ["interrupted"]
    with played(place):  # another process resumes it
        (place / "run.log").write_text("start")
        assert [run.standing.state for run in folder.look().runs] == ["running"]
        RunDirectory(place).finish({**RECORDED, "status": "complete"})
    assert [run.standing.state for run in folder.look().runs] == ["complete"]


def test_a_worker_that_died_leaves_its_reason_in_the_log(write: Callable[..., Path]) -> None:
    place = write("hqfa", 0, rounds=5)
    (place / "run.log").write_text("2026-01-01 00:00:00,000 ERROR failed: the process ended with status 9\n")
    os.utime(place / "run.log", (LONG_AGO, LONG_AGO))
    found = standing(place)
    assert (found.state, found.problem) == ("interrupted", "the process ended with status 9")


def test_half_written_tables_are_no_problem(write: Callable[..., Path]) -> None:
    place = write("hqfa", 0, rounds=3)
    table = place / "rounds.csv"
    content = table.read_bytes()
    for length in range(len(content), 0, -7):
        table.write_bytes(content[:length])
        found = standing(place)
        assert found.state == "incomplete"
        assert found.round <= 3
    table.write_text("what is this\n")
    assert standing(place).round == 0
    (place / "scenario.toml").unlink()
    assert standing(place).state == "unreadable"


def test_what_has_not_changed_is_not_read_again(
    write: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []

    class Counting(RunReader):
        def last(self) -> tuple[int, tuple[ServiceReport, ...]]:
            read.append(self._directory)
            return super().last()

    monkeypatch.setattr(tui.state.run_standing, "RunReader", Counting)
    for seed in range(4):
        write("hqfa", seed, status="complete")
    changing = write("hqfa", 9, rounds=5)
    folder = RunsFolder(tmp_path / "runs")
    folder.look()
    assert len(read) == 5
    read.clear()
    folder.look()
    assert read == []
    os.utime(changing / "rounds.csv")
    folder.look()
    assert read == [changing]


def test_runs_are_found_whichever_of_their_folders_is_named(write: Callable[..., Path], tmp_path: Path) -> None:
    places = [write("hqfa", 0), write("hqfa", 1), write("lcfa", 0)]
    (tmp_path / "runs" / "notes").mkdir()
    (tmp_path / "runs" / ".hidden" / "a" / "seed-0000").mkdir(parents=True)
    assert run_directories(tmp_path) == places
    assert run_directories(tmp_path / "runs") == places
    assert run_directories(tmp_path / "runs" / "small-0a0b0c0d") == places
    assert run_directories(tmp_path / "runs" / "small-0a0b0c0d" / "hqfa") == places[:2]


def test_time_left_follows_the_pace_of_what_plays(write: Callable[..., Path], tmp_path: Path) -> None:
    place = write("hqfa", 0, rounds=4)
    waiting = [RunDirectory(tmp_path / "runs" / "small-0a0b0c0d" / "hqfa" / f"seed-000{n}") for n in (1, 2)]
    for run in waiting:
        run.announce()
    whole = TABLES["rounds"].path(write("other", 0)).read_text()
    now = time.time()
    folder = RunsFolder(tmp_path / "runs", clock=lambda: now)
    with played(place):
        assert folder.look().left is None  # its files show no pace yet
        (place / "rounds.csv").write_text("".join(whole.splitlines(keepends=True)[: 1 + 3 * 10]))
        now += 3.0
        look = folder.look()
        one = next(run for run in look.runs if run.standing.path == place)
        assert (one.standing.round, one.rate, one.left) == (10, 2.0, 1.0)
        assert look.left == (2 + 12 + 12) / 2.0
        group = next(group for group in grouped(look.runs) if group.first.policy == "hqfa")
        assert group.left == look.left  # what waits counts there, too


def test_what_an_earlier_batch_did_not_begin_is_not_waited_for(write: Callable[..., Path], tmp_path: Path) -> None:
    write("hqfa", 0, status="complete")
    RunDirectory(tmp_path / "runs" / "small-0a0b0c0d" / "hqfa" / "seed-0001").announce()
    now = time.time()
    folder = RunsFolder(tmp_path / "runs", clock=lambda: now)
    assert folder.look().states == {"complete": 1, "waiting": 1}
    now += 100
    look = folder.look()
    assert (look.states, look.abandoned) == ({"complete": 1}, 1)


def test_orders_and_groups(write: Callable[..., Path], tmp_path: Path) -> None:
    for seed, rounds, status in ((0, 12, "complete"), (1, 12, "complete"), (10, 3, "failed")):
        write("hqfa", seed, rounds=rounds, status=status)
    write("lcfa", 0, rounds=2)
    runs = RunsFolder(tmp_path / "runs").look().runs
    by = {order: [(run.standing.policy, run.standing.seed) for run in ordered(runs, order)] for order in ORDERS}
    assert by["scenario and policy"] == [("hqfa", "0"), ("hqfa", "1"), ("hqfa", "10"), ("lcfa", "0")]
    assert by["state"][0] == ("hqfa", "10")
    assert by["accuracy"][:2] == [("hqfa", "0"), ("hqfa", "1")]
    hqfa, lcfa = grouped(ordered(runs, "scenario and policy"))
    assert hqfa.states == {"complete": 2, "failed": 1}
    assert hqfa.accuracy == runs[0].standing.accuracy
    assert (hqfa.met, hqfa.rounds, lcfa.rounds) == (1.0, (27, 36), (2, 12))
    assert (lcfa.accuracy, lcfa.met, lcfa.left) == (None, None, None)
