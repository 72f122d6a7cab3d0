"""Screens: the app in a shell's terminal, with random keys, clicks and sizes, suspended at times, and ended somehow."""

import os
import re
import shlex
import signal
import string
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random
from shutil import copytree
from tempfile import mkdtemp

from attack.campaign import Campaign
from attack.kills import TRAIN
from attack.shell import TINY, flmarket
from flmarket.core.installation import command
from support.leftovers import end, now
from support.terminal import ENDING, Terminal

RUN = ("run", "scarce", *TINY, "--policy", "hqfa", "--policy", "lcfa", "--seeds", "2", "--out", "runs")
OPENINGS = ("tui", "tui quickstart", "tui mine.toml", "tui runs", "tui agent", "replay runs/*/hqfa/seed-0000", "demo")

ESCAPES = (
    *("\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D", "\x1b[H", "\x1b[F", "\x1b[5~", "\x1b[6~", "\x1b[Z"),  # arrows to back tab
    *("\x1bOP", "\x1bOQ", "\x1bOR", "\x1bOS", "\x1b[15~", "\x1b[17~"),  # F1 to F6
    *("\r", "\t", "\x1b", "\x7f", "\x03", "\x05", "\x0f", "\x10", "\x13"),  # enter to delete; with ctrl c, e, o, p, s
)
KEYS = (*string.digits, *string.ascii_letters, *string.punctuation, " ", *ESCAPES * 3, b"\xff")
PAUSES = (0.0, 0.01, 0.03, 0.1)  # seconds between two keys
SOON = 10.0  # seconds in which the app's processes are gone after its end


@cache
def prepared() -> Path:
    """Return a folder with scenarios, runs and a training."""
    folder = Path(mkdtemp(prefix="attack-screens-"))
    for words in (RUN, ("train", *TRAIN, "--out", "agent.safetensors")):
        done = flmarket(*words, folder=folder)
        if done.status:
            raise RuntimeError(done.errors)
    text = next(folder.glob("runs/*/*/*/scenario.toml")).read_text(encoding="utf-8")
    (folder / "mine.toml").write_text(text.replace("rounds = 4\n", "rounds = 4000\n"), encoding="utf-8")
    (folder / "broken.toml").write_text("rounds = ", encoding="utf-8")
    return folder


class App:
    """The app in a shell, which says with what status it ends or is suspended."""

    def __init__(self, random: Random, terminal: Terminal) -> None:
        self._random, self._terminal = random, terminal
        self._columns, self._rows = 80, 24
        terminal.wait_for("status 0> ")
        self._shell(f"{shlex.join(command('flmarket.cli.main'))} {random.choice(OPENINGS)}")
        terminal.wait_until(terminal.children)
        [self._pid] = terminal.children()
        self._wait(random.choice((random.uniform(0, 2), 2)))

    @property
    def status(self) -> int | None:
        """The exit status, or that of a suspension; None while it runs."""
        found = re.search(rb"status (\d+)> ", self._terminal.seen[-2000:])
        return int(found[1]) if found else None

    def _shell(self, words: str) -> None:
        self._terminal.seen.clear()
        self._terminal.type(f"\x15{words}\r")  # ctrl+u: without what the app had no time to read

    def _wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        self._terminal.wait_until(lambda: time.monotonic() >= end or self.status is not None)

    def use(self) -> None:
        """Press keys, click and resize for a while, or until that ends the app."""
        for _ in range(self._random.choice((0, 10, 100, 1000))):
            if self.status is not None:
                return
            self._random.choices((self._press, self._click, self._resize), (85, 10, 5))[0]()
            self._wait(self._random.choice(PAUSES))

    def _press(self) -> None:
        self._terminal.type(self._random.choice(KEYS))

    def _click(self) -> None:
        button = self._random.choice((0, 0, 64, 65))  # or the wheel
        place = f"{self._random.randint(1, self._columns)};{self._random.randint(1, self._rows)}"
        self._terminal.type(f"\x1b[<{button};{place}M\x1b[<0;{place}m")

    def _resize(self) -> None:
        other = self._random.randint(1, 300), self._random.randint(1, 90)
        self._columns, self._rows = self._random.choice(((80, 24), (120, 40), (200, 60), other))
        self._terminal.resize(self._columns, self._rows)

    def suspend(self) -> Iterator[str]:
        """Suspend it by key or signal, and resume it; yield what is wrong."""
        if self._random.random() < 0.5:
            self._kill(signal.SIGTSTP)
        else:
            self._terminal.type("x\x1a")  # the first key may do no more than end a demo
        self._terminal.wait_until(lambda: self.status is not None)
        yield from self.restored("suspended")
        if self.status == 128 + signal.SIGTSTP:
            self._shell("fg")
            self._wait(self._random.uniform(0, 1))

    def end(self) -> Iterator[str]:
        """End it by a signal, or by the key; yield what is wrong."""
        ending = self._random.choice((*ENDING, 0))
        if ending:
            self._kill(ending)
        while not ending and self.status is None:
            self._terminal.type("\x11")
            self._wait(0.5)
            self._terminal.type("d\r")  # it asks, if a form is changed or a run is played
            self._wait(0.5)
        self._terminal.wait_until(lambda: self.status is not None)
        if self.status not in (0, 128 + ending, 128 + signal.SIGINT):  # ctrl+c, before it reads keys
            yield f"ended by signal {ending}: status {self.status}"

    def _kill(self, number: int) -> None:
        with suppress(ProcessLookupError):  # it has just ended by a key
            os.kill(self._pid, number)

    def restored(self, how: str) -> Iterator[str]:
        """Yield whether the terminal is not as it was."""
        if not self._terminal.restored():
            yield f"{how}: the terminal is not as it was"


def used(random: Random, folder: Path) -> Iterator[str]:
    """Use the app, and end it; yield what is wrong."""
    copytree(prepared(), folder, dirs_exist_ok=True)
    begun, temporary = now(), folder / "temporary"
    temporary.mkdir()
    env = {"HOME": str(folder), "TMPDIR": str(temporary), "EDITOR": "true", "PS1": "status $?> ", "HISTFILE": ""}
    with Terminal(["bash", "--norc", "--noediting", "-i"], folder, env=env) as terminal:
        app = App(random, terminal)
        app.use()
        while app.status is None and random.random() < 0.3:
            yield from app.suspend()
            app.use()
        hung_up = app.status is None and random.random() < 0.2
        if app.status is None and not hung_up:
            yield from app.end()
        elif app.status not in (None, 0, 128 + signal.SIGINT):  # ctrl+c, before it reads keys
            yield f"it ended by itself, with status {app.status}"
        if not hung_up:
            yield from app.restored("ended")
        terminal.hang_up()
        yield from (f"is left: {words}" for words in end(begun, patience=SOON))
        yield from (f"is left: {path.name}" for path in temporary.iterdir())
        if b"Traceback" in terminal.written:
            yield terminal.written.decode("utf-8", "replace").rpartition("Traceback")[2][:4000]


CAMPAIGNS = (
    Campaign("screens", "the app in a terminal: random keys, clicks and sizes, suspensions, and any end", 200, used),
)
