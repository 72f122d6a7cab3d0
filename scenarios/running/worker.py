"""A process that plays runs, one after another, for a batch or for a screen (``processes`` starts it).

It is asked by lines of JSON on its standard input, each with what to ``do``:

    prepare    load data sets early; not answered
    try        check whether what a scenario (pickled) names can be created; see ``try_message``
    play       play a run (pickled) of a batch; see ``play_message``
    watch      play a run for a screen; see ``steering.Start``
    call       call a function with an item, both pickled; the ``end`` has what it returns

and answers by lines of JSON, each with a ``type``. Rounds are in the run's directory, for whoever follows its files:

    opening    ``text`` says which step of its start a watched run begins
    begun      the run's ``directory`` is ready and holds as many rounds as are ``done``; the next one follows
    state      whether a watched run is paused, and its speed
    slow       plug-in code that has not returned for long
    end        the ``error``, if there is one, and its ``kind``: input, run, stopped

Commands to a watched run are in ``steering.Control``. The process ends when its input does, in the middle of a round
too: it never outlives its parent, and loses no more than the work since the last checkpoint.
"""

import base64
import faulthandler
import json
import os
import pickle
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

from des.observation import Observation
from fl.data.registry import Dataset, load
from flmarket.core.crash import guarded, outcome
from flmarket.core.errors import InputError, RunError
from flmarket.core.installation import end_with_parent, usable_cores, versions
from flmarket.core.plugin_errors import called, is_own
from learning.play_round import Stopped
from learning.policy import Policy, learns
from scenarios.build import Shelf, build_policy
from scenarios.file.schema import Scenario, Service
from scenarios.loader import dumps, parse, settled
from scenarios.logs.directory import Fresh, RunDirectory
from scenarios.playable import require_playable
from scenarios.plugin_files import packed, unpack
from scenarios.running.batch_run import Callback, Played, Run
from scenarios.running.origin import begin_fork, original_of
from scenarios.running.planning import plan
from scenarios.running.processes import NOTE, Message
from scenarios.running.runner import execute, message_of
from scenarios.running.steering import GRACE, Control, Start

PATIENCE = 30.0  # seconds after which plug-in code that has not returned is reported
_TICK = 1.0  # seconds between two looks at where the main thread is


def play_message(run: Run, *, workers: int, fresh: Fresh, decision_timeout: float | None = None) -> Message:
    """Return the content of a message ``play``; ``pickled`` says who reads it."""
    directory = RunDirectory(run.directory.path.absolute())  # a policy may change the current one
    return {
        "run": pickled(replace(run, directory=directory)),
        "workers": workers,
        "fresh": fresh,
        "timeout": decision_timeout,
        "plugins": packed(run.scenario),
    }


def try_message(scenario: Scenario, decision_timeout: float | None) -> Message:
    """Return the content of a message ``try``."""
    return {"scenario": pickled(scenario), "timeout": decision_timeout, "plugins": packed(scenario)}


def pickled(thing: object) -> str:
    """Return a run, a task or its result for a line of JSON. It goes through pipes (or Ray), never to a file."""
    return base64.b64encode(pickle.dumps(thing)).decode()


def unpickled(text: str) -> Any:
    return pickle.loads(base64.b64decode(text))  # noqa: S301 - of the process that started this one, or of its child


def _sendable(error: BaseException) -> BaseException:
    """Return an error as it can be sent to the parent: with its traceback in words, if it is nobody's mistake."""
    if not isinstance(error, (InputError, RunError)):
        error.add_note("".join(traceback.format_exception(error)))
    try:
        unpickled(pickled(error))
    except Exception:
        return RunError(message_of(error))
    return error


class TimeLimit:
    """A limit for each call of a policy. The process that exceeds it ends; ``Process.obituary`` says where it stood.

    It is faulthandler's: its watchdog is no thread of Python's, so it ends code that never lets go of the interpreter's
    lock, too. It writes down where each thread stands, and ends the process.
    """

    def __init__(
        self,
        seconds: float | None,  # None limits nothing
        report: int,  # the descriptor to which a process that is ended writes where it stands
        note: Callable[[str], None],  # called with what is about to be called, and with "" when it has returned
    ) -> None:
        self._seconds, self._report, self._note = seconds, report, note

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Limit what the block does."""
        if self._seconds is None:
            yield
            return
        faulthandler.dump_traceback_later(self._seconds, exit=True, file=self._report)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()

    def create(self, scenario: Scenario, service: Service) -> Policy:
        """Create a policy whose calls are limited and, if it is a plug-in's, noted: it may end the process."""
        with self._noted(f"service {service.name}, policy {service.policy}"):
            policy = build_policy(scenario, service)
        if self._seconds is not None or not type(policy).__module__.startswith("learning."):
            for name in ("act", "state", "restore", *(["learn"] if learns(policy) else [])):
                object.__setattr__(policy, name, self._limited(getattr(policy, name), service.name))
        return policy

    def _limited(self, method: Callable[..., Any], service: str) -> Callable[..., Any]:
        @wraps(method)
        def call(*given: Any) -> Any:
            when = f", round {given[0].round}" if given and isinstance(given[0], Observation) else ""
            with self._noted(f"service {service}{when}"):
                return method(*given)

        return call

    @contextmanager
    def _noted(self, what: str) -> Iterator[None]:
        self._note(what)
        try:
            with self():
                yield
        finally:
            self._note("")


def report_slow(report: Callable[[str], None]) -> None:
    """Report plug-in code in the main thread that has not returned for ``PATIENCE`` seconds, once each time; for ever.

    It runs in a thread of its own, so it sees nothing of code that never lets go of the interpreter's lock.
    """
    entered, since, reported = None, 0.0, False
    main = threading.main_thread().ident or 0
    while True:
        time.sleep(_TICK)
        stack = list(traceback.walk_stack(sys._current_frames().get(main)))
        plugin_calls = [(frame, line) for frame, line in stack if is_own(frame.f_code.co_filename)]
        outermost = plugin_calls[-1][0] if plugin_calls else None
        if outermost is None or outermost is not entered:
            entered, since, reported = outermost, time.monotonic(), False
        elif not reported and time.monotonic() - since > PATIENCE:
            reported = True
            innermost, line = plugin_calls[0]
            where = f"{innermost.f_code.co_filename}:{line}, in {called(innermost)},"
            report(f"{where} has not returned for {PATIENCE:g} s")


class Worker(Callback):
    """This process: its standard input and output, which plug-ins do not get, and what it does for its parent."""

    def __init__(self) -> None:
        end_with_parent()  # even while a policy keeps all of Python from running
        versions()  # of the code that is loaded, whatever is installed meanwhile
        self._asks = os.fdopen(os.dup(0), encoding="utf-8")
        self._answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
        self._last_words = os.dup(2)  # while a run lasts, standard error is its log
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        faulthandler.enable()  # the log of a run that crashes says where
        self._lock = threading.Lock()
        self._messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._control: Control | None = None  # of a run that is watched
        self._shelf = Shelf(self._load)

    def serve(self) -> None:
        """Do what is asked for, until nothing more will be."""
        home = Path.cwd()
        threading.Thread(target=self._listen, daemon=True).start()
        threading.Thread(target=report_slow, args=[self._report_slow], daemon=True).start()
        do = {"prepare": self._prepare, "try": self._try, "play": self._play, "watch": self._watch, "call": self._call}
        while True:
            asked = self._messages.get()
            os.chdir(home)  # where the files that scenarios name are
            do[asked.pop("do")](asked)

    def _prepare(self, asked: Message) -> None:
        for name in asked["datasets"]:
            with suppress(InputError):  # the run that needs it reports what is wrong
                self._shelf.get(name)

    def _try(self, asked: Message) -> None:
        limit = TimeLimit(asked["timeout"], self._last_words, self._note)

        def work() -> None:
            with limit():
                unpack(asked["plugins"])
            require_playable(unpickled(asked["scenario"]), self._shelf, limit.create)

        self._end(work)

    def _play(self, asked: Message) -> None:
        limit = TimeLimit(asked["timeout"], self._last_words, self._note)

        def work() -> None:
            with limit():
                unpack(asked["plugins"])
            self._execute(unpickled(asked["run"]), limit, workers=asked["workers"], fresh=asked["fresh"])

        self._end(work)

    def _execute(self, run: Run, limit: TimeLimit, *, workers: int, fresh: Fresh) -> None:
        # What torch, a policy or a crash writes belongs to the run's log.
        execute(run, self._shelf, self, workers=workers, fresh=fresh, create=limit.create, capture=True)

    def begin(self, run: Run, done: int) -> None:
        """Answer that the run's files are ready, and let its first round begin when the screen says so."""
        self._send("begun", directory=str(run.directory.path), sweep=dict(run.sweep), done=done)
        if self._control is not None:
            self._send_state(self._control)
            self._control.wait(done)

    def after_round(self, run: Run, report: Played) -> None:
        """Let the next round begin when the screen says so."""
        if self._control is not None and not report.last:
            self._control.wait(report.round)

    def _call(self, asked: Message) -> None:
        try:
            unpack(asked["plugins"])
            task, item = unpickled(asked["task"])
            result = pickled((task(item), None))
        except (Exception, SystemExit) as error:
            result = pickled((None, _sendable(error)))
        self._send("end", result=result)

    def _watch(self, asked: Message) -> None:
        plugins = asked.pop("plugins")
        self._end(lambda: self._play_watched(Start(**asked), plugins))
        sys.exit()

    def _play_watched(self, start: Start, plugins: Sequence[Mapping[str, str]]) -> None:
        unpack(plugins)
        scenario = parse(start.scenario, start.file)
        self._send("opening", text="checking the scenario")
        policies = [start.policy] if start.policy else []
        runs = plan([scenario], policies, [start.seed], Path(start.out), self._shelf)
        if not 0 <= start.point < len(runs):
            raise InputError(f"unknown point {start.point}; the sweep has {len(runs)} points")
        run = runs[start.point]
        self._send("opening", text="building the market and its models")
        fresh = start.fresh
        if start.origin is not None and start.hurry:
            if fresh:
                with run.directory.locked():
                    run.directory.prepare(dumps(settled(run.scenario)), fresh=True)
            with suppress(InputError):  # such as an original without a checkpoint
                begun = begin_fork(original_of(RunDirectory(Path(start.origin))), run, start.hurry, self._shelf)
                fresh = fresh and not begun
        self._execute(run, TimeLimit(None, self._last_words, self._note), workers=usable_cores(), fresh=fresh)

    def _end(self, work: Callable[[], None]) -> None:
        """Do what is asked for, and answer how it ended."""
        text, kind = None, None
        try:
            work()
        except Stopped:
            kind = "stopped"
        except InputError as error:
            text, kind = str(error), "input"
        except (RunError, SystemExit) as error:  # the run's log has the traceback
            text, kind = message_of(error), "run"
        except Exception as error:
            text, kind = outcome(error)[0], "run"
            print(text, file=sys.stderr)  # noqa: T201 - the last words
        self._send("end", error=text, kind=kind)

    def _load(self, name: str) -> Dataset:
        if self._control is not None:
            self._send("opening", text=f"reading {name}")
        return load(name)

    def _listen(self) -> None:
        for line in self._asks:
            asked = json.loads(line)
            if asked["do"] in Control.COMMANDS:
                if self._control is not None:
                    self._control.command(**asked)
                    self._send_state(self._control)
                continue
            if asked["do"] == "watch":  # now: commands may follow at once
                self._control = Control(paused=asked["paused"], speed=asked["speed"], hurry=asked["hurry"])
            self._messages.put(asked)
        if self._control is not None:  # a round may take minutes: it gets a moment, no more
            self._control.command("quit")
            time.sleep(GRACE)
        os._exit(0)

    def _report_slow(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)  # noqa: T201 - the run's log
        self._send("slow", text=text)

    def _send_state(self, control: Control) -> None:
        self._send("state", paused=control.paused, speed=control.speed)

    def _send(self, type_: str, **content: Any) -> None:
        with self._lock, suppress(BrokenPipeError):  # the parent has gone; so will this process
            self._answers.write(json.dumps({"type": type_, **content}) + "\n")

    def _note(self, text: str) -> None:
        """Write what this process is about to do where its parent finds it, should it be the last thing."""
        with suppress(OSError):  # the disk is full
            os.pwrite(self._last_words, text.encode()[:NOTE].ljust(NOTE), 0)


if __name__ == "__main__":
    sys.exit(guarded(Worker().serve))
