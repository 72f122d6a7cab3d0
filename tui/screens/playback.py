"""The keys that move a market screen through time: play, step, walk, seek, and jump to what happened."""

import os
from collections.abc import Iterator
from contextlib import suppress
from math import inf

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Button, Input, Static

from flmarket.core.text import counted
from scenarios.logs.reading import LogError
from scenarios.logs.run_state import RunState
from tui.screens.dialog import Box, Dialog
from tui.screens.navigation import Navigator
from tui.state.history import History
from tui.state.moment import Playhead, parts
from tui.state.pace import SLOW, faster
from tui.state.watched_run import Session
from tui.style.redraw import Redraw

REPLAY_RATE = 20.0  # rounds per second of a replay at full speed
PART = 0.15  # seconds that a part of a round is shown as it unfolds


class PlaybackScreen(Screen[None]):
    """Shows one moment of a run, and moves through its rounds and events."""

    def __init__(self, session: Session, navigator: Navigator, round_: int = 0) -> None:
        super().__init__()
        self.session = session
        self._navigator, self._runs = navigator, navigator.runs
        self.head = Playhead(awaited=round_)
        self._redraw = Redraw(self, self.draw)
        self._player: Timer | None = None
        self._unfolding: Timer | None = None
        self._unfolds = 0  # the round that unfolds
        self._parts: Iterator[int] = iter(())

    def draw(self) -> None:
        """Show the moment."""
        raise NotImplementedError

    @property
    def playing(self) -> bool:
        return self._player is not None

    def _has_rounds(self) -> bool:
        if not len(self.session.history):
            self.notify("There is no round yet." if not self.session.over else "No round was played.", timeout=3)
        return bool(len(self.session.history))

    def action_play(self) -> None:
        if self._runs.steerable(self.session):
            if self.session.state is RunState.PAUSED:
                self._runs.send(self.session, "resume")
                self.head.follow(self.session.history)
            else:
                self._runs.send(self.session, "pause")
        elif self._player is not None:
            self.show_round(self.head.round)
        elif self._has_rounds():
            if self.head.round >= len(self.session.history):
                self.head.seek(self.session.history, 1)
            self._start_playing()
        self.draw()

    def action_step(self) -> None:
        if self._runs.steerable(self.session):
            self._runs.send(self.session, "step")
            self.head.follow(self.session.history)
            self.draw()
        else:
            self.action_seek(1)

    def action_walk(self, direction: int) -> None:
        if self._has_rounds():
            self._stop_playing()
            self.head.walk(self.session.history, direction)
            self.draw()

    def action_faster(self, steps: int) -> None:
        speed = faster(self.session.speed, steps)
        if speed == self.session.speed:
            self.notify("There is no higher speed." if steps > 0 else "There is no lower speed.", timeout=3)
        self._play_at(speed)

    def action_full_speed(self) -> None:
        self._play_at(None)

    def _play_at(self, speed: float | None) -> None:
        self._navigator.settings.speed = inf if speed is None else speed
        self._runs.play_at(self.session, speed)
        if self._player is not None:
            self._start_playing()
        self.draw()

    def show_round(self, number: int) -> None:
        """Go to a round, or to the nearest one that exists."""
        self._stop_playing()
        self.head.seek(self.session.history, number)
        self.draw()

    def action_seek(self, rounds: int) -> None:
        if not self._has_rounds():
            return
        before = self.head.round
        self.show_round(before + rounds)
        if self.head.round == before:
            self.notify(f"Round {before} is the {'newest' if rounds > 0 else 'first'}.", timeout=3)

    def action_go_to(self) -> None:
        def go(number: int | None) -> None:
            if number is not None:
                self.show_round(number)

        if len(self.session.history):
            self.app.push_screen(GotoDialog(self.session.history, self.head.round), go)
        else:
            self.notify("No round has been played yet.", timeout=3)

    def action_follow(self) -> None:
        self._stop_playing()
        self.head.follow(self.session.history)
        self.draw()

    def action_jump(self, what: str, direction: int) -> None:
        self._stop_playing()
        if not self.head.jump(self.session.history, what, direction):
            words = "service leaves" if what == "exit" else "offer is outbid or dropped"
            where = f"{'after' if direction > 0 else 'before'} round {self.head.round}"
            so_far = " so far" if direction > 0 and not self.session.over else ""
            self.notify(f"No {words} {where}{so_far}.", timeout=3)
        self.draw()

    def _start_playing(self) -> None:
        self._stop_playing()
        self._player = self.set_interval(1 / (self.session.speed or REPLAY_RATE), self._play_on)

    def _unfold(self) -> None:
        """Show the round part by part, if rounds come slowly enough. The run does not wait."""
        pace = self.session.speed
        still = "NO_MOTION" in os.environ or self.app.animation_level == "none" or not self._navigator.settings.motion
        if not (still or pace is None or pace > SLOW):
            with suppress(LogError):  # which is shown when the round is drawn
                self._unfolds = self.head.round
                self._parts = iter(parts(self.session.history[self._unfolds].events))
                self._next_part()

    def _next_part(self) -> None:
        self._fold()
        if self.head.round != self._unfolds:  # the last round of a run, which may have fewer events, does not unfold
            return
        self.head.event = next(self._parts, None)
        if self.head.event is not None:
            self._unfolding = self.set_timer(PART, self._next_part)
        self._redraw.request()

    def _fold(self) -> None:
        if self._unfolding is not None:
            self._unfolding.stop()
            self._unfolding = None

    def action_motion(self) -> None:
        settings = self._navigator.settings
        settings.motion = not settings.motion
        slow = f"those that come at up to {SLOW:g} a second"
        self.notify(f"Rounds unfold: {slow}." if settings.motion else "Rounds are shown as a whole.", timeout=3)

    def _stop_playing(self) -> None:
        self._fold()
        if self._player is not None:
            self._player.stop()
            self._player = None

    def _play_on(self) -> None:
        if self._player is None:
            return  # stopped after this call was scheduled
        self.head.seek(self.session.history, self.head.round + 1)
        if self.head.round >= len(self.session.history):
            self._stop_playing()
        self._unfold()
        self._redraw.request()


class GotoDialog(Dialog[int]):
    """Asks for a round that has been played; the result is its number."""

    NAME = "Go to round"
    HELP = """Type the number of a round that has been played, and press [b]enter[/b]. The run continues meanwhile."""
    AUTO_FOCUS = "#round"

    def __init__(self, history: History, shown: int) -> None:
        super().__init__()
        self._history, self._at = history, shown

    def compose(self) -> ComposeResult:
        with Box():
            yield Static("[b]Go to round[/b]")
            yield Input(str(self._at), id="round", compact=True)
            yield Static(Content(f"{counted(len(self._history), 'round')} played"), id="played")
            yield from self.answers("Go")

    @on(Button.Pressed, "#go")
    @on(Input.Submitted)
    def _go(self) -> None:
        text, last = self.query_one("#round", Input).value.strip(), len(self._history)
        if not (text.isascii() and text.isdigit() and len(text) <= 9):
            self.show_problem(f"enter the number of a round, from 1 to {last}")
        elif not 1 <= int(text) <= last:
            self.show_problem(f"round {int(text)} has not been played; choose one from 1 to {last}")
        else:
            self.dismiss(int(text))
