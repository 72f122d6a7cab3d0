"""The training screen: a real training in a process of its own, watched, killed and resumed."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from textual.geometry import Region
from textual.pilot import Pilot
from textual.widgets import Static

from support.screens import until
from support.shell import CLI
from tui.app import MarketApp
from tui.screens.help import HelpScreen
from tui.screens.home import HomeScreen
from tui.screens.training import TrainingScreen
from tui.state.training_log import TrainingFeed
from tui.widgets.training_chart import LearningCurves, PreferenceTable, bars

REGION = Region(0, 0, 60, 10)


def text(screen: TrainingScreen, where: str) -> str:
    widget = screen.query_one(where)
    return "\n".join(strip.text for strip in widget.render_lines(widget.size.region))


async def watched(pilot: Pilot[None]) -> tuple[TrainingScreen, TrainingFeed]:
    await until(pilot, lambda: isinstance(pilot.app.screen, TrainingScreen))
    screen = pilot.app.screen
    assert isinstance(screen, TrainingScreen)
    return screen, screen.feeds[0]


def command(out: Path, episodes: int, *more: str) -> list[str]:
    words = ["train", "paper", "--backend", "surrogate", "--set", "rounds=5", "--evaluate-every", "3", "-q", *more]
    return [*CLI, *words, "--episodes", str(episodes), "--out", str(out)]


@contextmanager
def training(out: Path, episodes: int, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        command(out, episodes, *more), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=out.parent
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("size", [(120, 36), (80, 24), (200, 60)])
async def test_follows_a_training_that_is_killed_and_resumed(tmp_path: Path, size: tuple[int, int]) -> None:
    log = tmp_path / "mine.csv"
    app = MarketApp(trainings=[log], out=tmp_path / "runs", folder=tmp_path)
    async with app.run_test(size=size) as pilot:
        screen, feed = await watched(pilot)
        with training(tmp_path / "mine", 5000) as process:  # it would take minutes
            await until(pilot, lambda: len(feed.evaluations) >= 2)
            await until(pilot, lambda: "▶ running" in text(screen, "#training-table"))
            await until(pilot, lambda: feed.left is not None)
            assert "/5000" in text(screen, "#training-table")
            assert set(feed.baselines) == {"hqfa", "random", "lcfa"}
            await until(pilot, lambda: "fashion-mnist" in text(screen, "#training-preferences"))
            subtitle = screen.query_one(LearningCurves).border_subtitle
            assert "┄ hqfa 0." in str(subtitle)
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
async def test_opened_from_home_keys_and_help(tmp_path: Path) -> None:
    assert (
        subprocess.run(command(tmp_path / "agents" / "mine", 6), check=False, stdout=subprocess.DEVNULL).returncode == 0
    )
    app = MarketApp(out=tmp_path / "runs", folder=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        home = app.screen
        assert isinstance(home, HomeScreen)
        await until(pilot, lambda: any(entry.kind == "training" for entry in home.entries), "the training")
        offered = {found.title for found in app.get_system_commands(home)}
        assert {"Watch training mine", "Watch all runs", "Batch"} <= offered
        await pilot.press("slash", *"mine", "enter")
        await until(
            pilot,
            lambda: "complete, 6 of 6 episodes" in home.query_one("#preview", Static).render_lines(REGION)[1].text,
        )
        await pilot.press("r", "p", "space")
        assert [note.message for note in app._notifications] == [
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
        assert table.chosen is not None
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
            lambda: (
                "b.csv:2: is not a line of a training log" in str(screen.query_one("#training-detail", Static).render())
            ),
        )
        (tmp_path / "a.csv").unlink()
        await pilot.pause(1.2)
        assert app.screen is screen


def test_bars_stay_inside_their_blocks() -> None:
    assert bars([0.0, 0.124, 0.5, 0.99, 1.0]) == "▁ ▁ ▅ █ █"
    assert bars([]) == ""
