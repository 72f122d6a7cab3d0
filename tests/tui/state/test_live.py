"""Live runs: the real runner process, and runners that misbehave. No process may be left behind."""

import asyncio
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from textual.widgets import Button, Input, Select, SelectionList, TabbedContent

from scenarios.logs.directory import RunDirectory
from scenarios.logs.run_state import RunState
from scenarios.running.processes import Process
from scenarios.running.steering import Start
from support.screens import PATIENCE, Runner, play_headlessly, rendered, runner_of, screen_of, start_of, until
from support.shell import flmarket
from support.terminal import alive
from tui.app import MarketApp
from tui.panels.status_line import StatusLine
from tui.screens.compare import CompareScreen
from tui.screens.configure import ConfigureScreen
from tui.screens.dialog import QuitDialog
from tui.screens.market import MarketScreen
from tui.screens.run_dialogs import StartRunDialog
from tui.state.watched_run import Session
from tui.widgets.comparison import CompareTable


def launch(app: MarketApp, start: Start) -> tuple[MarketScreen, Session, int]:
    session = app.runs.start(start, "small")
    screen = MarketScreen(session, app)
    app.push_screen(screen)
    return screen, session, runner_of(app, session)


@pytest.mark.slow
async def test_a_run_from_the_form_to_an_exported_csv(app: MarketApp, small: Path) -> None:
    """Home, edit, a changed budget, run, live to the end, export: with the runner as a process of its own."""
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: getattr(app.screen, "entries", None), "home")
        await pilot.press("slash", *"small", "enter")
        await pilot.press("e")
        form = await screen_of(pilot, ConfigureScreen)
        await until(pilot, lambda: form.query("FieldRow"))
        form.query_one("#form", TabbedContent).active = "tab-services"
        await until(pilot, lambda: form.query("#service-form FieldRow"))
        row = next(row for row in form.query("FieldRow") if row.path == ("services", 0, "budget"))
        row.query_one(Input).value = "7.5"
        await until(pilot, lambda: form.document.get(("services", 0, "budget")) == 7.5, "the edit")
        await pilot.press("f5")
        await screen_of(pilot, StartRunDialog)
        await pilot.press("enter")
        screen = await screen_of(pilot, MarketScreen)
        await until(pilot, lambda: screen.session.state is RunState.COMPLETE, "the end of the run")
        await pilot.press("x")
        target = small / "out.csv"
        app.screen.query_one("#path", Input).value = str(target)
        await pilot.press("enter")
        directory = screen.session.directory
    assert RunDirectory(directory).state is RunState.COMPLETE
    # What the screen exports is what the command line exports.
    assert target.read_text() == flmarket("export", str(directory), "--csv", "-").stdout
    assert ",7.500000," in target.read_text()
    assert "budget = 10\n" in (small / "small.toml").read_text()  # the file itself was not saved


@pytest.mark.slow
async def test_pause_step_speed_and_seek_while_it_runs(app: MarketApp, small: Path) -> None:
    # So many rounds that the run is not over before the pause, however slow the machine is.
    (small / "small.toml").write_text((small / "small.toml").read_text().replace("rounds = 12", "rounds = 80"))
    async with app.run_test(size=(160, 48)) as pilot:
        screen, session, _ = launch(app, start_of(small, paused=True))
        await until(pilot, lambda: session.state is RunState.PAUSED, "the runner")
        assert len(session.history) == 0
        await pilot.press("s")
        await until(pilot, lambda: screen.head.round == 1, "the first round")
        await pilot.press("s", "s")
        await until(pilot, lambda: screen.head.round == 3, "two more")
        assert session.state is RunState.PAUSED
        await pilot.press("minus", "minus", "minus", "left")
        await until(pilot, lambda: session.speed == 2, "the brake")
        await pilot.press("space")
        await until(pilot, lambda: len(session.history) >= 4, "the run to continue")
        await pilot.press("home")
        assert screen.head.round == 1
        await until(pilot, lambda: len(session.history) >= 5, "the run to continue while another round is shown")
        assert screen.head.round == 1
        await pilot.press("space")
        await until(pilot, lambda: session.state is RunState.PAUSED, "the pause")
        await until(
            pilot,
            lambda: f"({len(session.history)} played)" in rendered(screen, StatusLine),
            "the status",
        )
        await pilot.press("f", "plus", "plus", "plus", "space")
        await until(pilot, lambda: session.state is RunState.COMPLETE, "the end")
        await until(pilot, lambda: screen.head.round == len(session.history) == 80, "the last round on the screen")


@pytest.mark.slow
async def test_an_intervention_forks_the_run_as_headless_runs_do(
    app: MarketApp, small: Path, fake_runner: Runner
) -> None:
    async with app.run_test(size=(160, 48)) as pilot:
        screen, session, _ = launch(app, start_of(small, paused=True))
        await until(pilot, lambda: session.state is RunState.PAUSED, "the runner")
        for n in (1, 2, 3):
            await pilot.press("s")
            await until(pilot, lambda n=n: screen.head.round == n, "a round")
        # Beside a folder of checkpoints, if the machine is so slow that five seconds have passed.
        original = {p.name: p.read_bytes() for p in session.directory.iterdir() if p.is_file()}
        await pilot.press("i")
        dialog = app.screen
        dialog.query_one("#key", Select).value = "clients.offline"
        await pilot.pause()
        value = dialog.query_one("#value", Input)
        assert value.value == "[]"
        for wrong, words in (
            ("[99]", "unknown client 99"),
            ("three", "enter a number, or a list such as [3, 7]"),
            ("[1, 1]", "twice"),
        ):
            value.value = wrong
            dialog.query_one("#go", Button).press()
            await pilot.pause()
            assert words in rendered(dialog, ".problem")
        value.value = "[0, 3]"
        assert dialog.query_one("#round", Input).value == "4"
        dialog.query_one("#go", Button).press()
        await screen_of(pilot, CompareScreen)
        await pilot.press("escape")
        fork_screen = app.screen
        fork = fork_screen.session
        await until(pilot, lambda: len(fork.history) == 3 and fork.state is RunState.PAUSED, "the shared rounds")
        assert [r.text for r in fork.history] == [r.text for r in session.history]
        await pilot.press("space")
        await until(pilot, lambda: fork.state is RunState.COMPLETE, "the end of the fork")
        assert fork.directory != session.directory
        assert not {0, 3} & {offer.client for n in range(4, 13) for offer in fork.history[n].offers}
        await until(pilot, lambda: fork_screen.head.round == 12, "the fork's last round on the screen")
        book = fork_screen.view.book
        assert book.conditions.offline == {0, 3}
        assert {p.name: p.read_bytes() for p in session.directory.iterdir() if p.is_file()} == original
        directory = fork.directory
    # The same scenario, headless, elsewhere.
    again = small / "again"
    play_headlessly(Start((directory / "scenario.toml").read_text(), "again", str(again)), fake_runner("formula"))
    other = again / directory.relative_to(small / "runs")
    for name in ("scenario.toml", "rounds.csv", "offers.csv", "events.csv"):
        assert (other / name).read_bytes() == (directory / name).read_bytes(), name


async def test_starting_over_ends_the_same_run_that_goes_on(app: MarketApp, small: Path) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        _, session, pid = launch(app, start_of(small, paused=True))
        await until(pilot, lambda: session.state is RunState.PAUSED, "the runner")
        assert app.runs.start(start_of(small), "small") is session
        fresh = app.runs.start(start_of(small, fresh=True), "small")
        assert fresh is not session
        assert not alive(pid)
        await until(pilot, lambda: fresh.state is RunState.COMPLETE, "the end")
        assert app.runs.sessions == [fresh]


@pytest.mark.slow
async def test_several_policies_at_once_are_compared_live(app: MarketApp, small: Path) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: getattr(app.screen, "entries", None), "home")
        await pilot.press("slash", *"small", "enter", "r")
        await screen_of(pilot, StartRunDialog)
        app.screen.query_one(SelectionList).select("hqfa")
        await pilot.pause()
        app.screen.query_one("#go", Button).press()
        screen = await screen_of(pilot, CompareScreen)
        await until(pilot, lambda: all(s.state is RunState.COMPLETE for s in screen.sessions), "both runs")
        table = screen.query_one(CompareTable)
        await until(pilot, lambda: table.count == 6, "a row for each service and run")
        # Asked again, the dialog knows the runs that are there.
        await pilot.press("escape", "r")
        await screen_of(pilot, StartRunDialog)
        assert app.screen.query_one("#replay", Button).display


async def test_a_runner_that_fails_is_shown_and_the_app_lives_on(small: Path, fake_runner: Runner) -> None:
    app = MarketApp(out=small / "runs", folder=small, runner=fake_runner("crash"))
    async with app.run_test(size=(120, 40)) as pilot:
        screen, session, pid = launch(app, start_of(small))
        await until(pilot, lambda: session.state is RunState.FAILED, "the failure")
        await until(pilot, lambda: "failed" in rendered(screen, StatusLine), "the status")
        assert "was ended by signal 6; last words: the battery is empty" in (session.error or "")
        await until(pilot, lambda: not alive(pid), "the end of the process")
        await pilot.press("escape")
        assert not isinstance(app.screen, MarketScreen)


async def test_the_process_of_a_run_reads_its_data_while_the_dialog_is_open(
    app: MarketApp, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, object]] = []
    monkeypatch.setattr(Process, "send", lambda _, do, **what: asked.append((do, what.get("datasets"))))
    async with app.run_test(size=(120, 40)) as pilot:
        app.ask_and_run((small / "small.toml").read_text(), "small.toml")
        await until(pilot, lambda: asked, "the order")
        assert asked == [("prepare", ["digits", "scribbles", "strokes"])]
        await pilot.press("enter")
        await until(pilot, lambda: len(asked) > 1, "the run")
        assert asked[1:] == [("watch", None)]


async def test_a_runner_that_hangs_leaves_the_app_answering_until_one_quits(small: Path, fake_runner: Runner) -> None:
    app = MarketApp(out=small / "runs", folder=small, runner=fake_runner("hang"))
    async with app.run_test(size=(120, 40)) as pilot:
        screen, session, pid = launch(app, start_of(small))
        await pilot.pause(0.3)
        await pilot.press("2", "space", "m", "s")
        assert session.state is RunState.STARTING
        assert screen.panels.active == 2
        await pilot.press("q")
        assert isinstance(app.screen, QuitDialog)
        await pilot.press("n")
        assert isinstance(app.screen, MarketScreen)
        await pilot.press("q")
        app.simulate_key("y")
        await asyncio.sleep(0.2)
    assert not alive(pid)


@pytest.mark.slow
async def test_a_flood_of_rounds_loses_none_and_draws_few(app: MarketApp, small: Path) -> None:
    text = (small / "small.toml").read_text().replace("rounds = 12", "rounds = 3000")
    (small / "small.toml").write_text(re.sub("target_accuracy = [0-9.]+", "target_accuracy = 1.0", text))
    async with app.run_test(size=(120, 40)) as pilot:
        screen, session, _ = launch(app, start_of(small))
        draws = []
        whole = screen.draw
        screen._redraw._draw = lambda: (draws.append(len(session.history)), whole())
        await until(pilot, lambda: len(session.history) > 100, "the flood")
        app.simulate_key("2")
        await until(pilot, lambda: screen.panels.active == 2, "the answer to a key")
        await until(pilot, lambda: len(session.history) == 3000, "all rounds")
        assert [logged.number for logged in session.history] == list(range(1, 3001))
        assert len(draws) < 3000 / 2  # how far apart they are: tests/tui/style/test_redraw.py
        await until(pilot, lambda: screen.head.round == 3000, "the newest")


@pytest.mark.slow
async def test_quitting_while_it_runs_ends_the_process_and_leaves_a_replay(app: MarketApp, small: Path) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        _, session, pid = launch(app, start_of(small, speed=1))
        await until(pilot, lambda: len(session.history) >= 2, "two rounds")
        app.runs.play_at(session, 0.001)  # however slow the machine is, the run is not over
        await pilot.press("q")
        app.simulate_key("y")
        await asyncio.sleep(0.2)
    assert not alive(pid)
    assert RunDirectory(session.directory).state is RunState.INCOMPLETE
    again = MarketApp(out=small / "runs", folder=small)
    async with again.run_test(size=(120, 40)) as pilot:
        replayed = again.runs.open(session.directory)
        await until(pilot, lambda: len(replayed.history) >= 2, "the replay")


async def test_an_exception_in_the_app_leaves_no_process(small: Path, fake_runner: Runner) -> None:
    app = MarketApp(out=small / "runs", folder=small, runner=fake_runner("hang"))
    pids = []
    with pytest.raises(ZeroDivisionError):  # noqa: PT012 - it comes up when the app ends
        async with app.run_test() as pilot:
            pids.append(launch(app, start_of(small))[2])
            app.call_later(lambda: 1 / 0)
            await pilot.pause(0.3)
    assert not any(map(alive, pids))


@pytest.mark.slow
def test_killing_the_app_ends_its_runner(small: Path, fake_runner: Runner) -> None:
    """SIGKILL leaves the app no chance; the runner sees its input end."""
    program = (
        "from tui.state.feeds import LiveRun\nfrom tui.state.watched_run import Session\n"
        "from scenarios.running.processes import Process\n"
        "from scenarios.running.steering import Start\n"
        f"start = Start(open({str(small / 'small.toml')!r}).read(), 'x', {str(small / 'runs')!r}, paused=True)\n"
        f"feed = LiveRun(Session('x'), start, Process({fake_runner('formula')!r}))\n"
        "print(feed.pid, flush=True)\nfeed.read()\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    pid = int(parent.stdout.readline())
    assert alive(pid)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    end = time.monotonic() + PATIENCE
    while alive(pid):
        assert time.monotonic() < end, "the runner outlived the app"
        time.sleep(0.05)


@pytest.mark.slow
async def test_a_policy_that_takes_long_is_named(small: Path, fake_runner: Runner) -> None:
    app = MarketApp(out=small / "runs", folder=small, runner=(*fake_runner("dawdling"), str(small / "seen")))
    async with app.run_test(size=(120, 40)) as pilot:
        screen, session, _ = launch(app, start_of(small, policy="lcfa"))
        await until(pilot, lambda: session.slow is not None, "the report")
        line = "mine.py:3, in dawdle, has not returned for 0.5 s"
        assert session.slow == line
        await until(pilot, lambda: line in rendered(screen, StatusLine), "the status line")
        (small / "seen").touch()
        await until(pilot, lambda: session.state is RunState.COMPLETE, "the end")
        assert session.slow is None
        assert session.directory is not None
        assert line in (session.directory / "run.log").read_text().splitlines()
