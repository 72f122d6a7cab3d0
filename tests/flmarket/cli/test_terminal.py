"""The end of a command in a terminal, or its suspension: the terminal is as it was, and its runs can be resumed."""

import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from scenarios.loader import dumps, parse
from scenarios.logs.directory import RunDirectory
from scenarios.logs.run_state import RunState
from support.shell import CLI, process
from support.terminal import Terminal, alive
from support.tiers import slow

TERM, HUP, CONT = signal.SIGTERM, signal.SIGHUP, signal.SIGCONT


@pytest.mark.slow
@pytest.mark.parametrize(
    ("signals", "status"),
    [([TERM, CONT], 143), *slow(([HUP], 129), ([signal.SIGINT], 130))],
    ids=["timeout", "SIGHUP", "SIGINT"],
)
def test_a_signal_ends_the_app_which_leaves_the_terminal_as_it_was(
    signals: Sequence[signal.Signals], status: int, tmp_path: Path
) -> None:
    """With SIGTERM comes SIGCONT where timeout(1) or systemd ends a process."""
    with Terminal([*CLI, "tui"], tmp_path) as terminal:
        terminal.wait_for("quickstart")
        for number in signals:
            terminal.process.send_signal(number)
        assert terminal.end() == status
        assert terminal.restored()


EARLY = """\
import os, signal, sys
from flmarket.cli import launch
from flmarket.cli.main import main
from tui.app import MarketApp

def first(*given):
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    except KeyboardInterrupt:
        pass
    return real(*given)

real, {where} = {where}, first
sys.argv = ["flmarket", "tui"]
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("where", ["launch.opening", "MarketApp.get_default_screen"])
def test_a_signal_that_comes_while_the_app_starts_ends_it_too(where: str, tmp_path: Path) -> None:
    """Also where Python loses what a signal raises, as NumPy's modules do while they are imported."""
    with Terminal([sys.executable, "-c", EARLY.format(where=where)], tmp_path) as terminal:
        assert terminal.end() == 143
        assert terminal.restored()
        assert b"Traceback" not in terminal.written


@pytest.mark.slow
def test_input_that_is_no_text_is_ignored(tmp_path: Path) -> None:
    """A terminal that is set to Latin-1 sends ``é`` as what would be the first of three bytes in UTF-8."""
    with Terminal([*CLI, "tui"], tmp_path) as terminal:
        terminal.wait_for("quickstart")
        terminal.type(b"\xff\xe9?")
        terminal.wait_for("Keys here")
        terminal.type("qq")
        assert terminal.end() == 0


class Playing:
    """A folder with a scenario, and the app that plays it in a terminal, two rounds a second: half a minute in all."""

    def __init__(self, folder: Path, scenario: str) -> None:
        changes = ["training.backend=surrogate", "training.local_epochs=2", "rounds=60"]
        (folder / "small.toml").write_text(dumps(parse(scenario, overrides=changes)))
        (folder / "flmarket").mkdir()
        (folder / "flmarket/tui.toml").write_text("speed = 2.0\n")
        self.folder = folder
        self.command, self.env = [*CLI, "tui", "small.toml"], {"XDG_CONFIG_HOME": str(folder)}

    def begin(self, terminal: Terminal) -> None:
        """Start the run, and wait for its second round."""
        terminal.wait_for("Run small")
        terminal.type("\r")
        terminal.wait_until(lambda: self.rounds() >= 2)

    @property
    def directory(self) -> RunDirectory:
        [log] = self.folder.glob("runs/*/*/*/rounds.csv")
        return RunDirectory(log.parent)

    def rounds(self) -> int:
        """Return how many rounds the run's log has."""
        return sum(len(log.read_text().splitlines()) - 1 for log in self.folder.glob("runs/*/*/*/rounds.csv"))

    def resume(self) -> str:
        """Play the rest of the run; return its log."""
        assert self.directory.state is RunState.INCOMPLETE
        assert process("run", "small.toml", cwd=self.folder).returncode == 0
        return (self.directory.path / "run.log").read_text()


@pytest.fixture
def playing(tmp_path: Path, one_service: str) -> Playing:
    return Playing(tmp_path, one_service)


@pytest.mark.slow
def test_a_signal_stops_the_run_after_a_round_from_which_it_is_resumed(playing: Playing) -> None:
    with Terminal(playing.command, playing.folder, env=playing.env) as terminal:
        playing.begin(terminal)
        children = terminal.children()
        terminal.process.send_signal(TERM)
        assert terminal.end() == 143
        assert terminal.restored()
        assert children
        assert not any(map(alive, children))
        assert f"continue after round {playing.rounds()}\n" in playing.resume()


@pytest.mark.slow
@pytest.mark.parametrize("ignoring", [[], [HUP]], ids=["shell", "nohup"])
def test_a_terminal_that_goes_away_takes_the_app_with_it_and_stops_the_run(
    ignoring: Sequence[signal.Signals], playing: Playing
) -> None:
    with Terminal(playing.command, playing.folder, env=playing.env, ignoring=ignoring) as terminal:
        playing.begin(terminal)
        children = terminal.children()
        terminal.hang_up()
        assert terminal.end() == 129
        assert not any(map(alive, children))
        assert f"continue after round {playing.rounds()}\n" in playing.resume()


@pytest.mark.slow
def test_ctrl_z_gives_the_terminal_back_until_fg_while_the_run_plays_on(playing: Playing) -> None:
    """In the background, with ``bg``, the app stops again."""
    env = {**playing.env, "PS1": "ready> ", "HISTFILE": ""}
    with Terminal(["bash", "--norc", "--noediting", "-ib"], playing.folder, env=env) as terminal:
        terminal.wait_for("ready>")
        terminal.type(f"{shlex.join(playing.command)}\r")
        playing.begin(terminal)
        for command in ("\x1a", "bg\r"):
            terminal.type(command)
            terminal.wait_for("Stopped")
            assert terminal.restored()
        played = playing.rounds()
        terminal.wait_until(lambda: playing.rounds() > played)
        terminal.type("fg\r")
        terminal.wait_for("\x1b[?1049h")
        terminal.type("F")
        terminal.wait_until(lambda: playing.directory.state is RunState.COMPLETE)
        terminal.wait_until(lambda: b"complete" in terminal.seen)  # it may have been, while the state was asked for
        terminal.type("q")
        terminal.wait_for("ready>")
        assert terminal.restored()
        terminal.type("echo left with $?\r")
        terminal.wait_for("left with 0")


@pytest.mark.slow
def test_ctrl_z_only_draws_anew_where_no_shell_could_continue_the_app(tmp_path: Path) -> None:
    """In a dialog, too."""
    with Terminal([*CLI, "tui", "quickstart"], tmp_path) as terminal:
        terminal.wait_for("Run quickstart")
        terminal.type("\x1a")
        terminal.wait_for("\x1b[?1049h", "Run quickstart")
        terminal.type(b"\x11")
        assert terminal.end() == 0
        assert terminal.restored()


# With the targets of the scenario all services leave before there is any progress to be shown.
OUT_OF_REACH = [f"services.{name}.target_accuracy=0.9999" for name in ("digits", "strokes", "scribbles")]
ENDLESS = ["--rounds", "100000", "--set", "training.backend=surrogate", *(f"--set={value}" for value in OUT_OF_REACH)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "progress"),
    [
        (["run", "quickstart", *ENDLESS], "as-configured"),
        (["train", "quickstart", "--backend", "surrogate", "--episodes", "5000", "--out", "agent"], "seed 0"),
    ],
    ids=["run", "train"],
)
def test_a_signal_ends_a_command_whose_progress_leaves_the_cursor(
    words: Sequence[str], progress: str, tmp_path: Path
) -> None:
    with Terminal([*CLI, *words], tmp_path) as terminal:
        terminal.wait_for(progress)
        terminal.process.send_signal(TERM)
        assert terminal.end() == 143
        assert terminal.restored()
        assert "interrupted; " in terminal.seen.decode()
        assert "Traceback" not in terminal.seen.decode()
