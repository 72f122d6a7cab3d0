"""Replay of run directories: finished, interrupted, growing, of plug-ins and of own files, and no run at all."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import tui.state.feeds
import tui.state.run_standing
from des.behaviour import BEHAVIOURS
from fl.data.registry import DATASETS
from learning.policy import POLICIES
from scenarios.build import Shelf
from scenarios.loader import load, parse
from scenarios.logs.columns import TABLES
from scenarios.logs.directory import RunDirectory
from scenarios.logs.reading import LogError, RunReader
from scenarios.logs.run_state import RunState
from scenarios.plugin_files import load_plugin
from scenarios.running.planning import plan
from scenarios.running.runner import execute
from scenarios.running.steering import Start
from support.runs import RECORDED, played
from support.screens import PATIENCE, Play, replayed, write_run
from tui.screens.export_dialog import write_csv
from tui.state.feeds import DirectoryFeed, LiveRun
from tui.state.run_standing import standing
from tui.state.watched_run import Session


@pytest.fixture
def source(play_small: Play) -> Session:
    return play_small()


@pytest.fixture
def place(tmp_path: Path, source: Session) -> Path:
    """The directory of a run of which no round was played."""
    return write_run(source, tmp_path / "runs" / "small-00000000" / "as-configured" / "seed-0001", rounds=0)


def write_all(source: Session, place: Path, rounds: int = 12) -> None:
    for table in reversed(TABLES):  # in the order in which they are written
        rows = [logged.text[table] for logged in source.history][:rounds]
        (place / f"{table}.csv").write_text(TABLES[table].header + "".join(rows))


def wait(happened: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.02)


@contextmanager
def following(place: Path) -> Iterator[Session]:
    """A session that a thread fills from a run directory, as long as the test looks at it."""
    session = Session("replay")
    feed = DirectoryFeed(session, place)
    thread = threading.Thread(target=feed.read)
    thread.start()
    try:
        yield session
    finally:
        feed.close()
        thread.join(PATIENCE)


def ended(source: Session, place: Path, status: str = "complete", **more: object) -> None:
    """Record that a run has ended, with all its rounds."""
    RunDirectory(place).finish({**RECORDED, "rounds": len(source.history), "status": status, **more})


@pytest.mark.parametrize(("status", "state"), [("complete", RunState.COMPLETE), ("failed", RunState.FAILED)])
def test_a_run_that_has_ended(place: Path, source: Session, status: str, state: RunState) -> None:
    write_all(source, place)
    ended(source, place, status, error="it diverged", sweep={"clients.cores": 1})
    session = replayed(place)
    assert session.state is state
    assert session.sweep == ({"clients.cores": 1} if status == "complete" else {})
    assert [r.text for r in session.history] == [r.text for r in source.history]
    assert (session.seed, session.policy, session.hash8) == (1, "as-configured", "00000000")
    assert ("it diverged" in (session.error or "")) == (status == "failed")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A feed looks often, and what has not changed is taken for what has stopped."""
    monkeypatch.setattr(tui.state.feeds, "FOLLOWED", 0.01)
    monkeypatch.setattr(tui.state.run_standing, "QUIET", 0.0)


def test_a_growing_run_is_followed_in_whole_rounds_however_the_bytes_arrive(
    place: Path, source: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tui.state.feeds, "FOLLOWED", 0.01)
    with following(place) as session:
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
        ended(source, place)
        wait(lambda: session.state is RunState.COMPLETE)


@pytest.mark.usefixtures("quick")
def test_an_interrupted_run_shows_its_whole_rounds(place: Path, source: Session) -> None:
    write_all(source, place)
    rounds = place / "rounds.csv"
    rounds.write_text(rounds.read_text()[:-30])  # the last write was cut off
    with following(place) as session:
        wait(lambda: session.state is RunState.INTERRUPTED)
        assert len(session.history) == len(source.history) - 1


@pytest.mark.usefixtures("quick")
def test_a_run_that_a_process_holds_is_running_however_long_its_round_takes(
    place: Path, source: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And it is before its rounds are read."""
    write_all(source, place)
    seen: list[RunState] = []
    add = Session.add

    def noting(session: Session, text: Mapping[str, str]) -> None:
        seen.append(session.state)
        add(session, text)

    monkeypatch.setattr(Session, "add", noting)
    with RunDirectory(place).locked(), following(place) as session:
        wait(lambda: len(session.history) == len(source.history))
        assert session.state is standing(place).state is RunState.RUNNING
    assert set(seen) == {RunState.RUNNING}
    with following(place) as session:
        wait(lambda: session.state is RunState.INTERRUPTED)


@pytest.mark.usefixtures("quick")
def test_a_run_with_several_offers_in_a_round_shows_all_rounds(
    tmp_path: Path, play_small: Play, scenario_text: str
) -> None:
    source = play_small(f'{scenario_text}\n[market]\nmechanism = "iterated"\n')
    with following(write_run(source, tmp_path / "small-00000000" / "as-configured" / "seed-0001")) as session:
        wait(lambda: session.state is RunState.INTERRUPTED)
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
def test_a_damaged_run_says_so(
    place: Path, source: Session, file: str, content: str | tuple[str, str], words: str
) -> None:
    write_all(source, place)
    path = place / file
    path.write_text(content if isinstance(content, str) else path.read_text().replace(*content, 1))
    session = replayed(place)
    assert session.state is RunState.UNREADABLE
    assert words in (session.error or "")


def test_the_newest_round_and_some_of_all_are_found_without_reading_the_rest(place: Path, source: Session) -> None:
    assert RunReader(place).last() == (0, ())
    assert RunReader(place).some(5) == []
    write_all(source, place)
    assert RunReader(place).last() == (12, source.history[12].services)
    assert [one.number for one in RunReader(place).some(1000)] == list(range(1, 13))
    few = RunReader(place).some(2)
    assert len(few) < 6
    assert (few[0].number, few[-1].number) == (1, 12)
    assert all(one.services == source.history[one.number].services for one in few)
    with (place / "rounds.csv").open("ab") as file:  # a round that is being written
        file.write(b"13," + (place / "rounds.csv").read_bytes().splitlines()[-1].partition(b",")[2] + b"\n")
    assert RunReader(place).some(2)[-1].number <= 12


def test_a_defect_ends_a_replay_with_a_traceback(source: Session, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_all(source, place)
    monkeypatch.setattr(Session, "add", lambda *_: 1 / 0)
    session = replayed(place)
    assert session.state is RunState.UNREADABLE
    assert "ZeroDivisionError: division by zero\nThis is a defect of flmarket." in (session.error or "")


@pytest.mark.usefixtures("quick")
def test_a_run_that_is_started_over_is_followed_to_its_end(place: Path, source: Session) -> None:
    """Its tables are other files then, which hold the same rounds again."""
    write_all(source, place, rounds=3)
    with following(place) as session:
        wait(lambda: len(session.history) == 3)
        for table in TABLES:
            (place / f"{table}.csv").unlink()
        write_all(source, place)
        ended(source, place)
        wait(lambda: session.state is RunState.COMPLETE)
    assert [r.text for r in session.history] == [r.text for r in source.history]


def test_a_table_that_goes_before_it_is_read_is_yet_to_come(
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
    write_all(source, place, rounds=3)
    ended(source, place)
    session = replayed(place)
    assert session.state is RunState.UNREADABLE
    assert "started over while it was watched; open it again" in (session.error or "")


@pytest.mark.parametrize(
    ("key", "content", "changed", "told"),
    [
        ("data.partition", "client,image\n0,5\n1,9\n", ("5", "6"), "is not the file with which"),
        (
            "clients.devices",
            "speed,download_mbps,upload_mbps\n1,2,3\n",
            ("2,3", "2,4"),
            "is not the file of devices with which",
        ),
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
    given += ["timeline.upload_seconds=0"] if key == "clients.devices" else []
    run = played(parse(text, overrides=given), tmp_path / "runs").path
    file.write_text(content.replace(*changed))
    session = replayed(run)
    assert session.state is RunState.UNREADABLE
    assert f"{run}: cannot be replayed: {key}: {file} {told} the run was played" in (session.error or "")
    assert not session.history
    file.write_text(content)
    session = replayed(run)
    assert session.state is RunState.COMPLETE


@pytest.mark.parametrize("foreign", [b"round,x\nabc,1\n", b"\xff\xfe\x00garbage\n", b"x,1,2\n\n\n", b"12,1\n"])
def test_progress_of_a_run_with_a_damaged_table_is_refused_as_a_log(
    place: Path, source: Session, foreign: bytes
) -> None:
    """Batches and lists look at it while it is written; the run itself says what is wrong."""
    write_all(source, place)
    with (place / "rounds.csv").open("ab") as file:
        file.write(foreign)
    with pytest.raises(LogError):
        RunReader(place).last()


@pytest.fixture(scope="module")
def adaptive_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    changes = ["rounds=8", "training.backend=surrogate", "clients.behaviour.kind=adaptive"]
    [run] = plan([load("scarce", changes)], ["hqfa"], [0], tmp_path_factory.mktemp("runs"), Shelf())
    execute(run, Shelf())
    return run.directory.path


@pytest.fixture
def growing(adaptive_run: Path, tmp_path: Path) -> Path:
    """The same run as it is while another process plays it: without an end, cut in the middle of writing round 8."""
    folder = tmp_path / adaptive_run.parent.parent.name / adaptive_run.parent.name / adaptive_run.name
    folder.mkdir(parents=True)
    for path in adaptive_run.iterdir():
        if path.name != "meta.json":
            (folder / path.name).write_bytes(path.read_bytes())
    rounds = folder / "rounds.csv"  # which is written last
    rounds.write_bytes(rounds.read_bytes()[:-5])
    return folder


def test_the_order_book_shows_what_clients_asked_whatever_round_is_looked_at(adaptive_run: Path) -> None:
    session = replayed(adaptive_run)
    assert session.state is RunState.COMPLETE
    names = [service.name for service in session.scenario.services]
    for number in (8, 2, 5, 1, 8):
        logged = session.history[number]
        book = session.book(logged)
        for offer in logged.offers:
            assert book.line(names.index(offer.service), offer.client).bid == offer.bid


def rounds_so_far(path: Path) -> int:
    """How many rounds of a growing run are shown."""
    services = len(parse((path / "scenario.toml").read_text()).services)
    rounds = list(RunReader(path).grow(services))
    assert all(text["clients"].count("\n") == text["offers"].count("\n") > 0 for text in rounds)
    return len(rounds)


def test_a_round_is_shown_when_all_of_its_tables_are_there(growing: Path, adaptive_run: Path) -> None:
    assert rounds_so_far(growing) == 7
    (growing / "rounds.csv").write_bytes((adaptive_run / "rounds.csv").read_bytes())
    assert rounds_so_far(growing) == 8


def test_clients_are_exported_as_they_were_logged(adaptive_run: Path, tmp_path: Path) -> None:
    rows = write_csv(replayed(adaptive_run), "clients", tmp_path / "clients.csv")
    lines = (adaptive_run / "clients.csv").read_text().splitlines()
    assert rows == len(lines) - 1
    exported = (tmp_path / "clients.csv").read_text().splitlines()
    assert exported[0] == f"scenario,policy,seed,{lines[0]}"
    assert [line.split(",", 3)[3] for line in exported[1:]] == lines[1:]


def test_a_run_without_its_behaviour_says_what_to_load(adaptive_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bids cannot be known, so nothing is drawn."""
    builtin = {name: thing for name, thing in BEHAVIOURS._builtin.items() if name != "adaptive"}
    monkeypatch.setattr(BEHAVIOURS, "_builtin", builtin)
    session = replayed(adaptive_run)
    assert session.state is RunState.UNREADABLE
    assert "unknown behaviour 'adaptive'" in (session.error or "")


HERMIT = """
from flmarket import Offer, Policy, policy

@policy("hermit")
class Hermit(Policy):
    def act(self, observation):
        return Offer.none()
"""

NOISE = """
import numpy as np
from flmarket import dataset

@dataset("noise")
def noise():
    draw = np.random.default_rng(0)
    images = draw.integers(0, 256, (1000, 8, 8), np.uint8)
    return images, np.arange(1000) % 5, images[:100], np.arange(100) % 5
"""


def played_with(scenario: str, plugin: str, policy: str, folder: Path) -> Session:
    """A run that the runner of the screens has played with a plug-in."""
    (folder / "mine.py").write_text(plugin)
    load_plugin(folder / "mine.py")
    live = Session("")
    feed = LiveRun(live, Start(scenario, "a scenario", str(folder / "runs"), policy, seed=0))
    feed.read()
    feed.close()
    return live


@pytest.mark.slow
def test_the_runner_is_sent_the_plugin_and_a_replay_does_without_it(one_service: str, tmp_path: Path) -> None:
    live = played_with(one_service, HERMIT, "hermit", tmp_path)
    assert (live.state, live.error, live.policy) == (RunState.COMPLETE, None, "hermit")
    assert {row.policy for row in live.history[1].services} == {"hermit"}
    assert replayed(live.directory).state is RunState.COMPLETE

    POLICIES._registered.clear()
    forgotten = replayed(live.directory)
    assert (forgotten.state, forgotten.error, len(forgotten.history)) == (RunState.COMPLETE, None, 4)
    assert forgotten.world.conditions(1).budgets == {"alpha": 6_500_000}


def test_a_replay_asks_for_a_data_set_that_bids_depend_on(one_service: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(NOISE)
    load_plugin(tmp_path / "mine.py")
    (run,) = plan([parse(one_service.replace('"digits"', '"noise"'))], [], [0], tmp_path / "runs", shelf := Shelf())
    execute(run, shelf, workers=0)
    assert replayed(run.directory.path).state is RunState.COMPLETE
    DATASETS._registered.clear()
    forgotten = replayed(run.directory.path)
    assert forgotten.state is RunState.UNREADABLE
    assert forgotten.error == (
        f"{run.directory.path}: uses data set 'noise' of the plug-in file mine.py; load that file"
    )


def write(labels: int) -> None:
    """Write lamps.npz: 600 images of noise."""
    which = np.arange(600) % labels
    pixels = np.random.default_rng(0).integers(0, 255, (600, 8, 8), dtype=np.uint8)
    np.savez("lamps.npz", pixels=pixels, labels=which, split=np.arange(600) % 5 == 0)


@pytest.fixture
def run(one_service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    """Two rounds on lamps.npz, of three labels."""
    monkeypatch.chdir(tmp_path)
    write(labels=3)
    text = one_service.replace('"digits"', '"lamps.npz"').replace("emd = [0.2, 1.0]", "emd = [0.0, 0.6]")
    [planned] = plan([parse(text.replace("[training]", '[training]\nmodel = "mlp"'))], [], [0], tmp_path, Shelf())
    execute(planned, Shelf(), workers=0)
    return planned.directory


def drawn_as_logged(session: Session) -> bool:
    """Whether the bids that are drawn again are those of the offers in the log."""
    offers = [(logged.number, offer) for logged in session.history for offer in logged.offers]
    assert offers
    return all(session.world.qualities(number).bid[0, offer.client] == offer.bid for number, offer in offers)


@pytest.mark.parametrize("change", [lambda: write(labels=4), lambda: Path("lamps.npz").unlink()], ids=["other", "gone"])
def test_a_replay_draws_what_the_run_drew(change: Callable[[], None], run: RunDirectory) -> None:
    change()
    session = replayed(run.path)
    assert (session.state, session.error) == (RunState.COMPLETE, None)
    assert drawn_as_logged(session)
