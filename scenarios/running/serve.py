"""A run in a process of its own, steered through its standard input; ``flmarket.core.installation.command`` starts it.

It is a run as in a batch, with one more observer, which reports every round and pauses on command. The messages are
in ``protocol``. The process ends when its input does, so it never outlives its parent.
"""

import json
import os
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO

from des.log_records import RoundReport
from fl.data.registry import Dataset, load
from flmarket.core.cores import usable_cores
from flmarket.core.crash import guarded, outcome
from flmarket.core.errors import InputError, RunError
from learning.episode import Stopped
from scenarios.build import Shelf
from scenarios.loader import ScenarioError, dumps, parse, settled
from scenarios.logs.columns import round_text
from scenarios.logs.directory import RunDirectory
from scenarios.logs.reading import rounds_text
from scenarios.plugins import unpack
from scenarios.running.apart import apart_from_user
from scenarios.running.origin import begin_fork, original_of
from scenarios.running.planning import plan
from scenarios.running.protocol import GRACE, Hello, ProtocolError, Start, message
from scenarios.running.runner import execute
from scenarios.running.time_limit import report_slow


class Control:
    """Lets the simulation continue, or not, at the end of each round. Commands come from another thread."""

    def __init__(self, start: Start) -> None:
        self._changed = threading.Condition()
        self._paused, self._speed = start.paused, start.speed
        self._hurry = start.hurry
        self._steps = 0
        self._quit = False
        self._last = time.monotonic()

    @property
    def state(self) -> dict[str, bool | float | None]:
        return {"paused": self._paused, "speed": self._speed}

    def command(self, line: str) -> None:
        """Execute a command line."""
        try:
            found = json.loads(line)
            do, rounds = found["do"], found.get("rounds")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ProtocolError(f"not a command: {line[:200]!r}") from error
        with self._changed:
            match do:
                case "pause":
                    self._paused = True
                case "resume":
                    self._paused = False
                case "step":
                    self._paused, self._steps = True, self._steps + 1
                case "speed" if rounds is None or (isinstance(rounds, int | float) and rounds > 0):
                    self._speed = rounds
                case "quit":
                    self._quit = True
                case _:
                    raise ProtocolError(f"not a command: {line[:200]!r}")
            self._changed.notify_all()

    def wait(self, done: int) -> None:
        """Return when the round after ``done`` may begin."""
        with self._changed:
            while not self._quit and done >= self._hurry:
                if self._paused and self._steps:
                    self._steps -= 1
                    break
                brake = 0.0 if self._speed is None else self._last + 1 / self._speed - time.monotonic()
                if not self._paused and brake <= 0:
                    break
                self._changed.wait(None if self._paused else brake)
            if self._quit:
                raise Stopped
        self._last = time.monotonic()


class Server:
    """One run, from its start line to its last word."""

    def __init__(self, commands: IO[str], messages: IO[str]) -> None:
        self._commands, self._messages = commands, messages
        self._lock = threading.Lock()

    def serve(self) -> int:
        """Run what the first line asks for; return the exit status of the command line's contract."""
        try:
            start = Start.parse(self._commands.readline())
            control = Control(start)
            threading.Thread(target=self._listen, args=[control], daemon=True).start()
            self._run(start, control)
        except (ScenarioError, ProtocolError, InputError) as error:
            self._send("end", status="failed", error=str(error))
            return 2
        except RunError as error:
            self._send("end", status="failed", error=str(error))
            return 1
        except Stopped:
            self._send("end", status="stopped", error=None)
            return 130
        except Exception as error:
            line, status = outcome(error)
            print(line, file=sys.stderr)  # noqa: T201 - the log
            self._send("end", status="failed", error=line)
            return status
        self._send("end", status="complete", error=None)
        return 0

    def _run(self, start: Start, control: Control) -> None:
        unpack(start.plugins)
        scenario = parse(start.scenario, start.file)

        def load_and_say(name: str) -> Dataset:
            self._send("opening", text=f"reading {name}")
            return load(name)

        shelf = Shelf(load_and_say)
        self._send("opening", text="checking the scenario")
        runs = plan([scenario], [start.policy] if start.policy else [], [start.seed], Path(start.out), shelf)
        if not 0 <= start.point < len(runs):
            raise InputError(f"unknown point {start.point}; the sweep has {len(runs)} points")
        run = runs[start.point]

        def ready() -> None:
            place = str(run.directory.path)
            sweep = dict(run.sweep)
            self._send("hello", **asdict(Hello(place, dumps(run.scenario), run.digest, run.policy, run.seed, sweep)))
            self._send("state", **control.state)
            kept = list(rounds_text(run.directory.path))  # of an interrupted run that resumes
            for text in kept:
                self._send("round", text=text, last=False)
            control.wait(len(kept))

        def observe(report: RoundReport) -> None:
            self._send("round", text=round_text(report), last=report.last)
            if not report.last:
                control.wait(report.round)

        self._send("opening", text="building the market and its models")
        workers = usable_cores()
        threading.Thread(target=report_slow, args=[self._report_slow], daemon=True).start()
        fresh = start.fresh
        if start.origin is not None and start.hurry:
            if fresh:
                with run.directory.locked():
                    run.directory.prepare(dumps(settled(run.scenario)), fresh=True)
            with suppress(InputError):  # such as an original without a checkpoint
                begun = begin_fork(original_of(RunDirectory(Path(start.origin))), run, start.hurry, shelf)
                fresh = fresh and not begun
        execute(
            run,
            shelf,
            workers=workers,
            fresh=fresh,
            ready=ready,
            observers=[observe],
            capture=True,  # what torch, a policy or a crash writes belongs to the run's log
        )

    def _report_slow(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)  # noqa: T201 - the run's log
        self._send("slow", text=text)

    def _listen(self, control: Control) -> None:
        for line in self._commands:
            try:
                control.command(line)
            except ProtocolError as error:
                print(error, file=sys.stderr)  # noqa: T201 - the log; the sender could do nothing with it
            else:
                self._send("state", **control.state)
        # The other end is gone, or has said quit and closed. A round may take minutes: it gets a moment, no more.
        control.command('{"do": "quit"}')
        time.sleep(GRACE)
        os._exit(130)

    def _send(self, type_: str, **content: object) -> None:
        with self._lock:
            try:
                self._messages.write(message(type_, **content) + "\n")
                self._messages.flush()
            except (BrokenPipeError, ValueError):
                os._exit(130)  # the reader has gone


def main() -> int:
    """Serve on standard input and output. Whatever else prints to standard output goes to standard error."""
    return Server(sys.stdin, apart_from_user()).serve()  # ``quit`` is how the user ends a run


if __name__ == "__main__":
    sys.exit(guarded(main))
