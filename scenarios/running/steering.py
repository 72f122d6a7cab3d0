"""A run that a screen steers: what starts it, and what lets it continue, or not, at the end of each round."""

import threading
import time
from dataclasses import dataclass
from typing import Annotated

from annotated_doc import Doc

from learning.play_round import Stopped
from scenarios.running.run_options import StartOver

GRACE = 2.0  # seconds that a round in progress gets to end after ``quit``; whatever is on disk by then is whole rounds


@dataclass(frozen=True)
class Start:
    """A run to start for a screen."""

    scenario: str  # the scenario file's text
    file: str  # what problems call it
    out: str  # where run directories go
    policy: str | None = None  # for every service, or None for those of the scenario
    point: int = 0  # which scenario of its sweep
    seed: int = 0  # the run's seed
    # wait for ``resume`` or ``step`` before the first round that is not hurried through
    paused: Annotated[bool, Doc("Start paused, before the first round.")] = False
    fresh: StartOver = False
    speed: float | None = None  # rounds in a second at most; None is as fast as it can
    hurry: int = 0  # play this many rounds without a pause or a brake first
    # the directory of the run that this one is a fork of: the ``hurry`` rounds that they share are taken from its
    # newest checkpoint, and played from there
    origin: str | None = None


class Control:
    """Holds a run up at the end of each round as long as the user wants. Commands come from another thread."""

    COMMANDS = frozenset({"pause", "resume", "step", "speed", "quit"})

    def __init__(self, *, paused: bool, speed: float | None, hurry: int) -> None:
        """Begin as a ``Start`` says."""
        self._changed = threading.Condition()
        self.paused, self.speed = paused, speed
        self._hurry = hurry
        self._steps = 0
        self._quit = False
        self._last = time.monotonic()

    def command(self, do: str, rounds: float | None = None) -> None:
        """Do one of ``COMMANDS``: a step plays one round and pauses again; the speed is ``rounds`` a second at most."""
        with self._changed:
            match do:
                case "pause":
                    self.paused = True
                case "resume":
                    self.paused = False
                case "step":
                    self.paused, self._steps = True, self._steps + 1
                case "speed":
                    self.speed = rounds
                case "quit":
                    self._quit = True
            self._changed.notify_all()

    def wait(self, done: int) -> None:
        """Return when the round after ``done`` may begin; raise Stopped if none will."""
        with self._changed:
            while not self._quit and done >= self._hurry:
                if self.paused and self._steps:
                    self._steps -= 1
                    break
                brake = 0.0 if self.speed is None else self._last + 1 / self.speed - time.monotonic()
                if not self.paused and brake <= 0:
                    break
                self._changed.wait(None if self.paused else brake)
            if self._quit:
                raise Stopped
        self._last = time.monotonic()
