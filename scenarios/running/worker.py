"""A process that plays runs for a batch, one after another; ``fl.installation.command`` starts it.

It reads one line of JSON for each run, and writes one for each round and one for the end:

    {"scenario": "name = ...", "policy": "lcfa", "seed": 3, "directory": "runs/...", ...}
    {"type": "round", "round": 1, "accuracies": {"mnist": 0.1}, "leaving": false}
    {"type": "end", "error": null, "kind": null}

It ends when its input does, in the middle of a run too: it never outlives whoever started it, and loses no more than
the work since the last checkpoint.
"""

import json
import os
import queue
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from des.records import RoundReport
from fl.errors import InputError
from scenarios.build import Shelf
from scenarios.loader import dumps, parse
from scenarios.logs.directory import Fresh, RunDirectory
from scenarios.plugins import packed, unpack
from scenarios.running.observer import Progress
from scenarios.running.runner import Run, execute


def order(run: Run, *, workers: int, fresh: Fresh) -> str:
    """Return the line that asks for a run."""
    return json.dumps(
        {
            "scenario": dumps(run.scenario),
            "policy": run.policy,
            "seed": run.seed,
            "directory": str(run.directory.path),
            "digest": run.digest,
            "sweep": dict(run.sweep),
            "point": run.point,
            "name": run.name,
            "workers": workers,
            "fresh": fresh,
            "plugins": packed(run.scenario),
        }
    )


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


def serve(orders: Callable[[], str], send: Callable[[dict[str, Any]], None]) -> None:
    """Play what is asked for, for ever."""
    shelf = Shelf()

    def observe(report: RoundReport) -> None:
        send({"type": "round", **asdict(Progress.of(report))})

    while True:
        asked = json.loads(orders())
        end: dict[str, Any] = {"type": "end", "error": None, "kind": None}
        try:
            unpack(asked["plugins"])
            execute(run_of(asked), shelf, workers=asked["workers"], fresh=asked["fresh"], observers=[observe])
        except Exception as error:  # run.log has the traceback
            end["error"] = str(error) or repr(error)
            end["kind"] = "input" if isinstance(error, InputError) else "run"
        send(end)


def main() -> None:
    """Serve on standard input and output. Whatever else prints to standard output goes to standard error."""
    messages = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            lines.put(line)
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    serve(lines.get, lambda message: print(json.dumps(message), file=messages))


if __name__ == "__main__":
    main()
