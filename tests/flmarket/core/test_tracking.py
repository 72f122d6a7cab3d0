"""Long work is counted where it is done, and shown where whoever started it wants that."""

import io
import re
import sys
from threading import Thread, Timer

import pytest

from flmarket.core import tracking
from flmarket.core.tracking import counting, hide, shown, tracked


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits until some time has passed."""
    monkeypatch.setattr(tracking, "INTERVAL", 0.0)
    monkeypatch.setattr(tracking, "PATIENCE", 0.0)


@pytest.mark.usefixtures("at_once")
def test_lines_say_how_many_are_done_and_what_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    with shown(live=False):
        assert list(tracked("abc", "letters")) == ["a", "b", "c"]
        with counting("rounds", 4) as step:
            step(1, "digits 50.0%")
            step(4)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "letters: 0 of 3"
    assert [line.rpartition(", ")[0] for line in lines[1:3]] == ["letters: 1 of 3", "letters: 2 of 3"]
    assert lines[3:] == ["rounds: 1 of 4, digits 50.0%", "rounds: 4 of 4, 0 s left"]


def test_what_is_done_at_once_is_not_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(tracking, "INTERVAL", 3600.0)
    with shown(live=False):
        list(tracked("abc", "letters"))
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("at_once")
def test_nothing_is_shown_unless_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    list(tracked("abc", "letters"))
    with shown(live=False):
        screen = Thread(target=lambda: list(tracked("abc", "of a screen")))
        screen.start()
        screen.join()
        hide()
        list(tracked("abc", "hidden"))
    list(tracked("abc", "afterwards"))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("width", [30, 80])
@pytest.mark.usefixtures("at_once")
def test_a_long_label_gives_way_to_the_bar_the_count_and_the_time(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", str(width))
    bars = tracking._progress()
    bars.add_task("label" * 13, total=100, completed=12, text="digits 50.0%")
    bars.console.print(bars.get_renderable())
    assert re.search(r" lab\w*… [━╸╺ ]+ +12/100 -:--:-- ", terminal.getvalue())
    assert terminal.getvalue().count("\n") == 1


@pytest.mark.usefixtures("at_once")
def test_ctrl_c_before_a_bar_appears_is_no_other_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(Timer):
        def start(self) -> None:
            raise KeyboardInterrupt

    monkeypatch.setattr(tracking, "Timer", Interrupted)
    with pytest.raises(KeyboardInterrupt), shown(live=True):
        list(tracked("abc", "letters"))


@pytest.mark.usefixtures("at_once")
def test_bars_are_gone_when_what_is_counted_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm-256color")

    def fail() -> None:
        with shown(live=True):
            for _ in zip(tracked("abc", "letters"), tracked("abc", "others"), strict=True):
                while "others" not in terminal.getvalue():
                    pass
                raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        fail()
    hidden, appeared = terminal.getvalue().rindex("\x1b[?25l"), terminal.getvalue().rindex("\x1b[?25h")
    assert "0/3" in terminal.getvalue()
    assert hidden < appeared, "the cursor is there again"
    assert sys.stderr is terminal
