"""A training as its files show it, however far these are written: on its screen, watched, killed and resumed."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.screen import Screen

from flmarket.cli.tui_argument import Opening, resolve
from flmarket.core.errors import InputError
from learning.training.records import BASELINE_COLUMNS, LOG_COLUMNS, Row, announced, is_announced, log_of
from support.screens import notes, rendered, screen_of, text_of, until
from support.shell import CLI
from support.terminal import wait_for
from tui.app import MarketApp
from tui.screens.help import HelpScreen
from tui.screens.training import TrainingScreen
from tui.state.training_log import TrainingFeed, TrainingPoint, find_logs, logs_at
from tui.widgets.training_chart import LearningCurves, PreferenceTable, bars


def text(screen: Screen[None], where: str) -> str:
    return text_of(screen.query_one(where))


async def watched(pilot: Pilot[None]) -> tuple[TrainingScreen, TrainingFeed]:
    screen = await screen_of(pilot, TrainingScreen)
    return screen, screen.feeds[0]


def command(out: Path, episodes: int, *more: str) -> list[str]:
    words = ["train", "paper", "--backend", "surrogate", "--set", "rounds=5", "--evaluate-every", "3", "-q", *more]
    return [*CLI, *words, "--episodes", str(episodes), "--out", str(out)]


@contextmanager
def training(out: Path, episodes: int, *more: str, cwd: Path | None = None) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        command(out, episodes, *more), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=cwd or out.parent
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
async def test_follows_a_training_that_is_killed_and_resumed(tmp_path: Path) -> None:
    log = tmp_path / "mine.csv"
    app = MarketApp(trainings=[log], out=tmp_path / "runs", folder=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        screen, feed = await watched(pilot)
        with training(tmp_path / "mine", 5000) as process:  # it would take minutes
            await until(pilot, lambda: len(feed.evaluations) >= 2)
            await until(pilot, lambda: feed.left is not None)
            assert set(feed.baselines) == {"hqfa", "random", "lcfa"}
            for size in ((80, 24), (200, 60), (120, 36)):
                await pilot.resize_terminal(*size)
                await until(pilot, lambda: "▶ running" in text(screen, "#training-table"))
                assert "/5000" in text(screen, "#training-table")
                await until(pilot, lambda: "fashion-mnist" in text(screen, "#training-preferences"))
                assert "┄ hqfa 0." in str(screen.query_one(LearningCurves).border_subtitle)
                assert "┄" in text(screen, "Plot")
            process.kill()
            process.wait()
        await until(pilot, lambda: feed.state == "interrupted")
        await until(pilot, lambda: "■ interrupted" in text(screen, "#training-table"))
        assert "the command with --resume continues it" in text(screen, "#training-status")
        played, points = len(feed.episodes), [point.values for point in feed.evaluations]
        more = played + 6
        with training(tmp_path / "mine", more, "--resume") as process:
            await until(pilot, lambda: feed.state == "complete")
        await until(pilot, lambda: "✔ complete" in text(screen, "#training-table"))
        assert [point.episode for point in feed.episodes] == list(range(1, more + 1))
        assert [point.values for point in feed.evaluations][: len(points)] == points
        found = [(one.episode, one.service) for one in feed.preferences]
        assert found == [
            (point.episode, name) for point in feed.evaluations for name in ("mnist", "fashion-mnist", "emnist")
        ]


@pytest.mark.slow
async def test_a_training_is_opened_from_the_moment_that_it_has_begun(tmp_path: Path) -> None:
    """While PyTorch is imported, its log is there, and nothing else."""
    out = tmp_path / "agents" / "mine"
    with training(out, 5000, cwd=tmp_path):
        wait_for(out.with_suffix(".csv").exists)
        assert not out.with_suffix(".training").exists()
        opened = resolve(str(out))
        assert opened == resolve(str(out.parent)) == Opening(trainings=[out.with_suffix(".csv")])
        app = MarketApp(trainings=opened.trainings, out=tmp_path / "runs", folder=tmp_path)
        async with app.run_test(size=(120, 36)) as pilot:
            screen, feed = await watched(pilot)
            await until(pilot, lambda: "… starting" in text(screen, "#training-table"))
            assert "1 training · 1 starting" in text(screen, "#training-status")
            await until(pilot, lambda: "▶ running" in text(screen, "#training-table"))
            assert len(feed.episodes) > 0


@pytest.mark.slow
def test_a_training_that_cannot_begin_leaves_nothing_behind(tmp_path: Path) -> None:
    refused = subprocess.run(
        command(tmp_path / "agents" / "mine", 5, "--option", "nonsense=1"), check=False, stderr=subprocess.DEVNULL
    )
    assert refused.returncode == 2
    assert list(tmp_path.iterdir()) == []


def test_a_log_without_rows_is_that_of_a_training_that_starts_and_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    out = tmp_path / "mine.safetensors"
    log = out.with_suffix(".csv")
    feed = TrainingFeed(log)
    assert feed.state == "reading"
    with announced([out]):
        feed.look()
        assert (feed.state, is_announced(out)) == ("starting", True)
        with log_of(out, 0) as writer:
            plan(log, 5)
            feed.look()
            assert (feed.state, is_announced(out)) == ("starting", False)
            writer.write([row(1).values()])
            feed.look()
            assert feed.state == "running"
    assert log.exists()
    with announced([tmp_path / "other.safetensors"]):
        other = tmp_path / "other.csv"
        os.utime(other, (LONG_AGO, LONG_AGO))  # its process was killed
        assert looked_at(other).state == "interrupted"
    assert not other.exists()


@pytest.mark.slow
async def test_opened_from_home_keys_and_help(tmp_path: Path) -> None:
    assert (
        subprocess.run(command(tmp_path / "agents" / "mine", 6), check=False, stdout=subprocess.DEVNULL).returncode == 0
    )
    app = MarketApp(out=tmp_path / "runs", folder=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        home = app.screen
        await until(pilot, lambda: any(entry.kind == "training" for entry in home.entries), "the training")
        offered = {found.title for found in app.get_system_commands(home)}
        assert {"Watch training mine", "Watch all runs", "Batch"} <= offered
        await pilot.press("slash", *"mine", "enter")
        await until(pilot, lambda: "complete, 6 of 6 episodes" in text(home, "#preview"))
        await pilot.press("r", "p", "space")
        assert notes(app) == [
            "That is a training; press enter to watch it.",
            "Only runs can be marked.",
        ]
        await pilot.press("enter")
        screen, feed = await watched(pilot)
        await until(pilot, lambda: feed.state == "complete")
        await until(pilot, lambda: "6/6" in text(screen, "#training-table"))
        curves = screen.query_one(LearningCurves)
        titles = []
        for _ in range(4):
            titles.append(str(curves.border_title))
            await pilot.press("v")
        assert len(set(titles)) == 4
        await pilot.press("tab", "down")
        table = screen.query_one(PreferenceTable)
        assert table.has_focus
        assert table.chosen.service == "fashion-mnist"
        assert "fashion-mnist: " in text(screen, "#training-detail")
        await pilot.press("question_mark")
        assert isinstance(app.screen, HelpScreen)
        await pilot.press("escape", "escape")
        assert app.screen is home


async def test_several_trainings_and_bad_files(tmp_path: Path) -> None:
    head = "episode,phase,epsilon,reward,auc,reached,markup,critic_loss,actor_loss,win_loss\n"
    (tmp_path / "a.csv").write_text(f"{head}1,train,1,0.5,0.5,0,0,,,\n1,evaluate,0,0.5,0.5,0,0,,,\n2,tra")
    (tmp_path / "b.csv").write_text(f"{head}1,train,1,x,y,0,0,,,\n")
    app = MarketApp(trainings=[tmp_path / "a.csv", tmp_path / "b.csv"], out=tmp_path / "runs", folder=tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        screen, _ = await watched(pilot)
        await until(pilot, lambda: "1/?" in text(screen, "#training-table"))
        assert "2 trainings" in text(screen, "#training-status")
        assert "no levels" in text(screen, "#training-status")
        await pilot.press("down")
        await until(
            pilot,
            lambda: "b.csv:2: is not a line of a training log" in rendered(screen, "#training-detail"),
        )
        (tmp_path / "a.csv").unlink()
        await pilot.pause(1.2)
        assert app.screen is screen


def test_bars_stay_inside_their_blocks() -> None:
    assert bars([0.0, 0.124, 0.5, 0.99, 1.0]) == "▁ ▁ ▅ █ █"
    assert bars([]) == ""


LONG_AGO = 1_000_000_000
PREFERENCES = """\
episode,service,offers,served,markup,bid_1,bid_2,bid_3,bid_4,bid_5,dqi_1,dqi_2,dqi_3,dqi_4,dqi_5
2,alpha,1.5,1,0.25,0,0,0,0.25,0.75,1,0,0,0,0
2,beta,0,,,,,,,,,,,,
"""


def row(episode: int, phase: str = "train", auc: float = 0.5) -> Row:
    return Row(episode, phase, 0.1, 0.25, auc, 0.0, 0.125, {"critic_loss": 0.5} if phase == "train" else {})


def write(log: Path, rows: list[Row], *, done: int = 0) -> None:
    with log_of(log, done) as writer:
        writer.write(row.values() for row in rows)


def looked_at(log: Path) -> TrainingFeed:
    feed = TrainingFeed(log)
    feed.look()
    return feed


def plan(log: Path, episodes: int) -> None:
    record = log.with_suffix(".training") / "record"
    record.mkdir(parents=True, exist_ok=True)
    provenance = {"policy": "mahdrl", "scenario": "paper", "backend": "surrogate"}
    (record / "plan.json").write_text(json.dumps({"plan": {"episodes": episodes}, "provenance": provenance}))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "mine.csv"


def test_rows_are_there_as_soon_as_their_episode_is_over(log: Path) -> None:
    feed = TrainingFeed(log)
    with log_of(log, 0) as writer:
        feed.look()
        assert (feed.state, feed.episodes, feed.problem) == ("starting", [], "")
        writer.write([row(1).values()])
        feed.look()
        assert feed.episodes == [TrainingPoint(1, {"auc": 0.5, "reward": 0.25, "reached": 0.0, "markup": 0.125})]
        writer.write([row(1, "evaluate", 0.75).values()])
        feed.look()
        assert [point.values["auc"] for point in feed.evaluations] == [0.75]
        assert len(feed.episodes) == 1


def test_a_killed_training_is_interrupted_and_a_resumed_one_continues_the_curve(log: Path) -> None:
    plan(log, 6)
    feed = TrainingFeed(log)
    with log_of(log, 0) as writer:
        for episode in (1, 2):
            writer.write([row(episode).values()])
        writer.write([row(2, "evaluate").values()])
        writer.write([row(3).values()])
        feed.look()
        assert (feed.state, feed.total, len(feed.episodes)) == ("running", 6, 3)
        assert feed.what == "mahdrl on paper (surrogate)"
    feed.look()
    assert feed.state == "interrupted"
    with log_of(log, 2) as writer:  # plays episode 3 again
        feed.look()
        assert (feed.state, len(feed.episodes), len(feed.evaluations)) == ("running", 2, 1)
        for episode in (3, 4, 5, 6):
            writer.write([row(episode).values()])
        writer.write([row(6, "evaluate").values()])
    log.with_suffix(".safetensors").touch()
    feed.look()
    assert [point.episode for point in feed.episodes] == [1, 2, 3, 4, 5, 6]
    assert [point.episode for point in feed.evaluations] == [2, 6]
    assert feed.state == "complete"


def test_the_state_of_a_training_that_nobody_watched(log: Path) -> None:
    write(log, [row(1), row(1, "evaluate")])
    plan(log, 1)
    assert looked_at(log).state == "incomplete"  # just now: its agent may still be written
    os.utime(log, (LONG_AGO, LONG_AGO))
    assert looked_at(log).state == "interrupted"
    log.with_suffix(".safetensors").touch()
    assert looked_at(log).state == "complete"
    plan(log, 4)  # resumed with more episodes, and killed
    assert looked_at(log).state == "interrupted"


def test_half_written_files_are_read_as_far_as_they_go(log: Path) -> None:
    write(log, [row(1), row(2), row(2, "evaluate")])
    content = log.read_bytes()
    for length in range(len(content)):
        log.write_bytes(content[:length])
        feed = looked_at(log)
        assert feed.problem == ""
        assert len(feed.episodes) <= 2
    plan(log, 4)
    record = log.with_suffix(".training") / "record"
    for name in ("plan.json", "baselines.csv", "preferences.csv"):
        (record / name).write_bytes(b'{"plan": \xff,1,2\n,,')
    feed.look()
    assert (feed.total, feed.baselines, feed.preferences) == (None, {}, [])


def test_what_is_no_log_is_named_with_its_line_and_a_pipe_is_not_waited_for(log: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    assert find_logs(tmp_path) == []
    write(log, [row(1)])
    with log.open("a") as file:
        file.write("2,train,what,is,this\n")
    feed = looked_at(log)
    assert feed.problem == f"{log}:3: is not a line of a training log"
    log.write_text("a,b\n1,2\n")
    feed.look()
    assert feed.problem == f"{log}: is not the log of a training"
    write(log, [row(1)])
    with log.open("a") as file:
        file.write(f"2,train,{'x' * 200_000}\n")
    feed.look()
    assert feed.problem.startswith(f"{log}:3: is not a line of a training log")
    log.unlink()
    feed.look()
    assert feed.state in {"incomplete", "interrupted"}


def test_baselines_and_preferences(log: Path) -> None:
    write(log, [row(1)])
    plan(log, 4)
    record = log.with_suffix(".training") / "record"
    (record / "baselines.csv").write_text("policy,reward,auc,reached,markup\nhqfa,0.5,0.875,0,0\n")
    (record / "preferences.csv").write_text(PREFERENCES)
    feed = looked_at(log)
    assert feed.baselines == {"hqfa": {"reward": 0.5, "auc": 0.875, "reached": 0.0, "markup": 0.0}}
    alpha, beta = feed.preferences
    assert (alpha.episode, alpha.offers, alpha.bids, alpha.dqis) == (2, 1.5, (0, 0, 0, 0.25, 0.75), (1, 0, 0, 0, 0))
    assert (beta.offers, beta.served, beta.markup, beta.bids) == (0.0, None, None, ())


def test_episodes_a_second_count_those_that_are_played_while_it_looks(log: Path) -> None:
    plan(log, 20)
    now = 0.0
    with log_of(log, 0) as writer:
        for episode in range(1, 6):
            writer.write([row(episode).values()])
        feed = TrainingFeed(log, clock=lambda: now)
        feed.look()
        for episode in range(6, 11):
            now += 0.5
            writer.write([row(episode).values()])
            feed.look()
        assert feed.pace.rate() == 2.0
        assert feed.left == 5.0
    feed.look()
    assert feed.left is None


def test_a_training_is_found_by_any_of_its_names(tmp_path: Path) -> None:
    one, two = tmp_path / "a-seed0.csv", tmp_path / "a-seed1.csv"
    for log in (one, two, tmp_path / "b.csv"):
        write(log, [row(1)])
    (tmp_path / "data.csv").write_text("x,y\n")
    assert find_logs(tmp_path) == [one, two, tmp_path / "b.csv"]
    assert find_logs(tmp_path / "a") == [one, two]
    assert find_logs(tmp_path / "b") == [tmp_path / "b.csv"]
    for suffix in (".csv", ".safetensors", ".json", ".training"):
        assert find_logs(tmp_path / f"a-seed1{suffix}") == [two]
    assert find_logs(tmp_path / "c") == []
    with pytest.raises(InputError, match=r"data.csv: there is no training; flmarket train writes NAME.csv next to"):
        logs_at(tmp_path / "data.csv")


def test_what_is_read_is_what_train_writes() -> None:
    from learning.training.records import FIFTHS
    from tui.state import training_log as training

    assert set(training.NEEDED) <= set(LOG_COLUMNS)
    assert set(training.METRICS) < set(BASELINE_COLUMNS)
    assert training.PARTS == FIFTHS
