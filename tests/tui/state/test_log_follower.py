"""Replay of run directories: finished, interrupted in the middle of a line, growing, and no run at all."""

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import tui.state.feeds
import tui.state.run_standing
from flmarket.core.errors import InputError
from scenarios.loader import parse
from scenarios.logs.columns import TABLES
from scenarios.logs.directory import RunDirectory
from scenarios.logs.finding import run_directory
from scenarios.logs.reading import LogError, RunReader
from scenarios.logs.run_state import RunState
from support.runs import RECORDED, played
from support.screens import PATIENCE
from tui.state.feeds import DirectoryFeed
from tui.state.run_standing import standing
from tui.state.watched_run import Session

Play = Callable[..., Session]


@pytest.fixture
def source(play_small: Play) -> Session:
    return play_small()


@pytest.fixture
def place(tmp_path: Path, source: Session) -> Path:
    from scenarios.loader import dumps

    place = tmp_path / "runs" / "small-00000000" / "as-configured" / "seed-0001"
    place.mkdir(parents=True)
    assert source.scenario is not None
    (place / "scenario.toml").write_text(dumps(source.scenario))
    (place / "run.log").touch()
    return place


def whole(source: Session, table: str) -> str:
    return TABLES[table].header + "".join(logged.text[table] for logged in source.history)


def write_all(source: Session, place: Path) -> None:
    for table in reversed(TABLES):  # in the order in which they are written
        (place / f"{table}.csv").write_text(whole(source, table))


def wait(happened: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.02)


def following(place: Path) -> tuple[Session, DirectoryFeed, threading.Thread]:
    session = Session("replay")
    feed = DirectoryFeed(session, place)
    thread = threading.Thread(target=feed.read)
    thread.start()
    return session, feed, thread


@pytest.mark.parametrize(("status", "state"), [("complete", RunState.COMPLETE), ("failed", RunState.FAILED)])
def test_a_run_that_has_ended(place: Path, source: Session, status: str, state: RunState) -> None:
    write_all(source, place)
    RunDirectory(place).finish(
        {
            **RECORDED,
            "rounds": len(source.history),
            "status": status,
            "error": "it diverged",
            "sweep": {"clients.cores": 1},
        }
    )
    session, _, thread = following(place)
    thread.join(PATIENCE)
    assert session.state is state
    assert session.sweep == ({"clients.cores": 1} if status == "complete" else {})
    assert [r.text for r in session.history] == [r.text for r in source.history]
    assert (session.seed, session.policy, session.hash8) == (1, "as-configured", "00000000")
    assert ("it diverged" in (session.error or "")) == (status == "failed")


def test_a_growing_run_is_followed_in_whole_rounds_however_the_bytes_arrive(
    place: Path, source: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tui.state.feeds, "FOLLOWED", 0.01)
    session, _, thread = following(place)
    for table, declared in TABLES.items():
        (place / f"{table}.csv").write_text(declared.header)
    for logged in source.history:
        for table in reversed(TABLES):  # in the order in which they are written
            text = logged.text[table]
            cut = len(text) * (logged.number % 5) // 4
            for piece in (text[:cut], text[cut:]):
                with (place / f"{table}.csv").open("a") as file:
                    file.write(piece)
                time.sleep(0.005)
        assert all(one.text == other.text for one, other in zip(session.history, source.history, strict=False))
    wait(lambda: len(session.history) == len(source.history))
    assert session.state is RunState.INCOMPLETE  # no process holds it
    RunDirectory(place).finish({**RECORDED, "rounds": len(source.history), "status": "complete"})
    thread.join(PATIENCE)
    assert session.state is RunState.COMPLETE


def test_an_interrupted_run_shows_its_whole_rounds(
    place: Path, source: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tui.state.run_standing, "QUIET", 0.0)
    write_all(source, place)
    rounds = place / "rounds.csv"
    rounds.write_text(rounds.read_text()[:-30])  # the last write was cut off
    session, feed, thread = following(place)
    wait(lambda: session.state is RunState.INTERRUPTED)
    assert len(session.history) == len(source.history) - 1
    feed.close()
    thread.join(PATIENCE)


def test_a_run_that_a_process_holds_is_running_however_long_its_round_takes(
    place: Path, source: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tui.state.run_standing, "QUIET", 0.0)
    write_all(source, place)
    with RunDirectory(place).locked():
        session, feed, thread = following(place)
        wait(lambda: session.state is not RunState.STARTING)
        assert session.state is standing(place).state is RunState.RUNNING
    wait(lambda: session.state is RunState.INTERRUPTED)
    feed.close()
    thread.join(PATIENCE)


def test_an_interrupted_run_whose_services_offer_several_times_in_a_round_shows_all_its_rounds(
    place: Path, play_small: Play, scenario_text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tui.state.run_standing, "QUIET", 0.0)
    source = play_small(f'{scenario_text}\n[market]\nmechanism = "iterated"\n')
    write_all(source, place)
    session, feed, thread = following(place)
    wait(lambda: session.state is RunState.INTERRUPTED)
    feed.close()
    thread.join(PATIENCE)
    assert len(session.history) == len(source.history)


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("scenario.toml", "rounds = ", "cannot be replayed"),
        ("rounds.csv", "a,b,c\n1,2,3\n", "does not have the columns"),
        ("rounds.csv", TABLES["rounds"].header + "1,x,y\n" * 3, "not a round"),
        ("offers.csv", (",served,", ",stolen,"), "cannot be replayed: not a round of offers.csv: "),
        ("offers.csv", (",outbid,", ',"'), "cannot be replayed: not a round of offers.csv: "),
        ("events.csv", (",pay,", ",x,"), "cannot be replayed: not a round of events.csv: "),
    ],
)
def test_what_is_no_run_says_so(
    place: Path, source: Session, file: str, content: str | tuple[str, str], words: str
) -> None:
    write_all(source, place)
    path = place / file
    path.write_text(content if isinstance(content, str) else path.read_text().replace(*content, 1))
    session, feed, thread = following(place)
    wait(lambda: session.state is RunState.UNREADABLE)
    feed.close()
    thread.join(PATIENCE)
    assert session.error is not None
    assert words in session.error


def test_a_run_that_is_played_is_running_before_its_rounds_are_read(
    place: Path, source: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_all(source, place)
    seen: list[RunState] = []
    add = Session.add

    def noting(session: Session, text: Mapping[str, str]) -> None:
        seen.append(session.state)
        add(session, text)

    monkeypatch.setattr(Session, "add", noting)
    with RunDirectory(place).locked():
        session, feed, thread = following(place)
        wait(lambda: len(session.history) == len(source.history))
    feed.close()
    thread.join(PATIENCE)
    assert set(seen) == {RunState.RUNNING}


def test_the_newest_round_is_found_without_reading_the_rest(place: Path, source: Session) -> None:
    assert RunReader(place).last() == (0, ())
    write_all(source, place)
    assert RunReader(place).last() == (12, source.history[12].services)


def test_some_rounds_are_whole_and_go_from_the_first_to_the_newest(place: Path, source: Session) -> None:
    assert RunReader(place).some(5) == []
    write_all(source, place)
    assert [one.number for one in RunReader(place).some(1000)] == list(range(1, 13))
    few = RunReader(place).some(2)
    assert len(few) < 6
    assert (few[0].number, few[-1].number) == (1, 12)
    assert all(one.services == source.history[one.number].services for one in few)
    with (place / "rounds.csv").open("ab") as file:  # a round that is being written
        file.write(b"13," + (place / "rounds.csv").read_bytes().splitlines()[-1].partition(b",")[2] + b"\n")
    assert RunReader(place).some(2)[-1].number <= 12


def test_a_folder_stands_for_the_one_run_in_it(place: Path, tmp_path: Path) -> None:
    assert run_directory(tmp_path) == place
    other = place.with_name("seed-0002")
    other.mkdir()
    (other / "scenario.toml").write_text("")
    with pytest.raises(InputError, match="contains 2 runs; choose one:") as caught:
        run_directory(tmp_path)
    assert len(str(caught.value).splitlines()) == 1 + 2
    for seed in range(3, 13):
        (place.with_name(f"seed-{seed:04d}")).mkdir()
        (place.with_name(f"seed-{seed:04d}") / "scenario.toml").write_text("")
    with pytest.raises(InputError, match=r"contains 12 runs; choose one:(\n  .*){10}\n  \(2 more\)$"):
        run_directory(tmp_path)
    with pytest.raises(InputError, match="no such directory"):
        run_directory(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"not a run directory; a run directory has a scenario\.toml and the tables"):
        run_directory(tmp_path / "empty")


def test_a_defect_ends_a_replay_with_its_traceback(
    source: Session, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_all(source, place)
    monkeypatch.setattr(Session, "add", lambda *_: 1 / 0)
    session, feed, thread = following(place)
    wait(lambda: session.state is RunState.UNREADABLE)
    feed.close()
    thread.join()
    assert session.error is not None
    assert "ZeroDivisionError: division by zero\nThis is a defect of flmarket." in session.error


def test_a_run_that_is_started_over_is_followed_to_its_end(
    place: Path, source: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tables are other files then, which hold the same rounds again."""
    monkeypatch.setattr(tui.state.feeds, "FOLLOWED", 0.01)
    for table in TABLES:
        first = [logged.text[table] for logged in source.history][:3]
        (place / f"{table}.csv").write_text(TABLES[table].header + "".join(first))
    session, _, thread = following(place)
    wait(lambda: len(session.history) == 3)
    for table in TABLES:
        (place / f"{table}.csv").unlink()
    write_all(source, place)
    RunDirectory(place).finish({**RECORDED, "rounds": len(source.history), "status": "complete", "sweep": {}})
    thread.join(PATIENCE)
    assert session.state is RunState.COMPLETE
    assert [r.text for r in session.history] == [r.text for r in source.history]


def test_a_table_that_goes_just_before_it_is_read_is_not_there_yet(
    place: Path, source: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where another process starts the run over."""
    write_all(source, place)
    reader, opened = RunReader(place), Path.open

    def too_late(path: Path, *how: str) -> object:
        path.unlink()
        return opened(path, *how)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", too_late)
        assert not list(reader.grow(3))
    write_all(source, place)
    assert len(list(reader.grow(3))) == len(source.history)


def test_a_complete_run_is_not_shown_without_some_of_its_rounds(place: Path, source: Session) -> None:
    for table in TABLES:
        first = [logged.text[table] for logged in source.history][:3]
        (place / f"{table}.csv").write_text(TABLES[table].header + "".join(first))
    RunDirectory(place).finish({**RECORDED, "rounds": len(source.history), "status": "complete", "sweep": {}})
    session, _, thread = following(place)
    thread.join(PATIENCE)
    assert session.state is RunState.UNREADABLE
    assert "started over while it was watched; open it again" in (session.error or "")


@pytest.mark.parametrize(
    ("key", "content", "changed", "told"),
    [
        ("data.partition", "client,image\n0,5\n1,9\n", ("5", "6"), "is not the file with which"),
        ("clients.availability", "client,from,to\n0,1,4\n1,1,4\n", ("1,1,4", "1,1,2"), "is not the trace with which"),
    ],
)
def test_a_run_is_not_shown_with_another_file_than_it_was_played_with(
    key: str, content: str, changed: tuple[str, str], told: str, one_service: str, tmp_path: Path
) -> None:
    """Bids, and who is offline, follow from the file: with another, the order book would be of no round."""
    file = tmp_path / "own.csv"
    file.write_text(content)
    text = one_service.replace("per_emd = 0.5", "per_emd = 0")
    if key == "data.partition":
        text = text.replace("data_size = [20, 40]\nemd = [0.2, 1.0]\n", "")
    given = ["clients.count=2", "training.validation=0", f"{key}={file}"]
    run = played(parse(text, overrides=given), tmp_path / "runs").path
    file.write_text(content.replace(*changed))
    session, _, thread = following(run)
    thread.join(PATIENCE)
    assert session.state is RunState.UNREADABLE
    assert f"{run}: cannot be replayed: {key}: {file} {told} the run was played" in (session.error or "")
    assert not session.history
    file.write_text(content)
    session, _, thread = following(run)
    thread.join(PATIENCE)
    assert session.state is RunState.COMPLETE


@pytest.mark.parametrize("foreign", [b"round,x\nabc,1\n", b"\xff\xfe\x00garbage\n", b"x,1,2\n\n\n", b"12,1\n"])
def test_progress_of_a_run_whose_table_is_damaged_is_refused_as_a_log(
    place: Path, source: Session, foreign: bytes
) -> None:
    """Batches and lists look at it while it is written; the run itself says what is wrong."""
    write_all(source, place)
    with (place / "rounds.csv").open("ab") as file:
        file.write(foreign)
    with pytest.raises(LogError):
        RunReader(place).last()
