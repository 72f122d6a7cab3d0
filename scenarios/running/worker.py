"""A process that plays runs for a batch, one after another; ``flmarket.core.installation.command`` starts it.

It reads and writes one object of JSON on a line; see ``serve``. What is printed while a run lasts goes into its log.
The process ends when its input does, in the middle of a run too: it never outlives its parent, and loses no more than
the work since the last checkpoint.
"""

import faulthandler
import json
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from des.log_records import RoundReport
from flmarket.core.crash import guarded
from flmarket.core.errors import InputError
from scenarios.build import Shelf
from scenarios.file.schema import Scenario
from scenarios.loader import dumps, parse
from scenarios.logs.directory import Fresh, RunDirectory
from scenarios.playable import require_playable
from scenarios.plugins import packed, unpack
from scenarios.running.apart import apart_from_user
from scenarios.running.observer import Progress
from scenarios.running.parent import end_with_parent
from scenarios.running.runner import Run, execute, message_of
from scenarios.running.time_limit import TimeLimit, report_slow


def order(run: Run, *, workers: int, fresh: Fresh, decision_timeout: float | None = None) -> str:
    """Return the line that asks for a run."""
    return json.dumps(
        {
            "scenario": dumps(run.scenario),
            "policy": run.policy,
            "seed": run.seed,
            "directory": str(run.directory.path.absolute()),  # a policy may change the current one
            "digest": run.digest,
            "sweep": dict(run.sweep),
            "point": run.point,
            "name": run.name,
            "workers": workers,
            "fresh": fresh,
            "timeout": decision_timeout,
            "do": "play",
            "plugins": packed(run.scenario),
        }
    )


def trial(scenario: Scenario, decision_timeout: float | None) -> str:
    """Return the line that asks whether a scenario can be played."""
    asked = {"do": "try", "scenario": dumps(scenario), "timeout": decision_timeout, "plugins": packed(scenario)}
    return json.dumps(asked)


def run_of(asked: dict[str, Any]) -> Run:
    """Return the run that a line asks for."""
    return Run(
        parse(asked["scenario"]),
        asked["policy"],
        asked["seed"],
        RunDirectory(Path(asked["directory"])),
        asked["digest"],
        asked["sweep"],
        asked["point"],
        asked["name"],
    )


def serve(
    orders: Callable[[], str],
    send: Callable[[dict[str, Any]], None],
    report: int,  # the descriptor that a process which is ended by its time limit writes to
) -> None:
    """Do what is asked for, for ever: read one line for each run, and write one for each round and one for the end.

        {"do": "play", "scenario": "name = ...", "policy": "lcfa", "seed": 3, "directory": "runs/...", ...}
        {"type": "round", "round": 1, "accuracies": {"mnist": 0.1}}
        {"type": "slow", "text": "mine.py:12, in Mine.act, has not returned for 30 s"}
        {"type": "end", "error": null, "kind": null}

    ``{"do": "try", "scenario": ...}`` asks whether what a scenario names can be created; the end has the first error.
    ``{"do": "prepare", ...}`` loads data sets early, and is not answered.
    """
    shelf, home = Shelf(), Path.cwd()

    def observe(report: RoundReport) -> None:
        send({"type": "round", **asdict(Progress.of(report))})

    while True:
        asked = json.loads(orders())
        os.chdir(home)  # where the files that scenarios name are
        if asked["do"] == "prepare":
            _prepare(asked["datasets"], shelf)
            continue
        limit = TimeLimit(asked["timeout"], report)
        end: dict[str, Any] = {"type": "end", "error": None, "kind": None}
        try:
            with limit():
                unpack(asked["plugins"])
            if asked["do"] == "try":
                require_playable(parse(asked["scenario"]), shelf, limit.create)
            else:
                execute(
                    run_of(asked),
                    shelf,
                    workers=asked["workers"],
                    fresh=asked["fresh"],
                    observers=[observe],
                    create=limit.create,
                    capture=True,
                )
        except (Exception, SystemExit) as error:  # run.log has the traceback
            end["error"] = message_of(error)
            end["kind"] = "input" if isinstance(error, InputError) else "run"
        send(end)


def _prepare(datasets: Iterable[str], shelf: Shelf) -> None:
    for name in datasets:
        with suppress(InputError):  # the run that needs it reports what is wrong
            shelf.get(name)
    import_module("fl.training.federation")


def main() -> None:
    """Serve on standard input and output.

    Plug-ins get neither: what they print to standard output goes to standard error, and there is nothing to read.
    """
    end_with_parent()
    commands = os.fdopen(os.dup(sys.stdin.fileno()), encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())
    os.close(nothing)
    messages = apart_from_user()
    faulthandler.enable()  # the log of a run that crashes says where
    report = os.dup(sys.stderr.fileno())  # while a run lasts, standard error is its log
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def listen() -> None:
        for line in commands:
            lines.put(line)
        os._exit(0)

    def send(message: dict[str, Any]) -> None:
        messages.write(json.dumps(message) + "\n")

    threading.Thread(target=listen, daemon=True).start()
    slow = partial(report_slow, lambda text: send({"type": "slow", "text": text}))
    threading.Thread(target=slow, daemon=True).start()
    serve(lines.get, send, report)


if __name__ == "__main__":
    sys.exit(guarded(main))
