"""Count the walk of ``flmarket run quickstart``, from its function to the first run started: ``python tools/walk.py``.

A step is the first call of a function of one of flmarket's modules into another of these modules. ``flmarket.core``,
and what modules do while they are imported, are left out. docs/decisions/house.md has the two numbers that are printed:
the modules that a reader enters, and the steps into one that was entered before.
"""

import importlib
import os
import sys
import tempfile
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

PACKAGES = ("des", "fl", "flmarket", "learning", "scenarios", "tui")
FIRST, LAST = ("flmarket.cli.commands.run", "run"), ("scenarios.running.processes", "start")


def module(frame: FrameType) -> str | None:
    name = str(frame.f_globals.get("__name__"))
    own = name.partition(".")[0] in PACKAGES and not name.startswith("flmarket.core")
    return name if own else None


class Walk:
    """A profiler that follows calls between modules."""

    def __init__(self) -> None:
        self.entered: list[str] = []
        self.steps: set[tuple[CodeType, str]] = set()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or (name := module(frame)) is None:
            return
        place = name, frame.f_code.co_name
        if place == FIRST:
            self.entered.append(name)
        callers, above = [], frame.f_back
        while above is not None:
            if above.f_code.co_name == "<module>" and module(above):
                return
            callers.append(above)
            above = above.f_back
        caller = next((it for it in callers if module(it)), None)
        if not self.entered or caller is None or module(caller) == name or frame.f_code.co_name == "<module>":
            return
        self.steps.add((caller.f_code, name))
        if name not in self.entered:
            self.entered.append(name)
        if place == LAST and caller.f_code.co_name == "_start":
            sys.setprofile(None)
            print("\n".join(self.entered))
            print(f"{len(self.entered)} modules entered, {len(self.steps) - len(self.entered) + 1} returns", flush=True)
            raise SystemExit


if __name__ == "__main__":
    sys.path.insert(0, str(Path.cwd()))
    sys.argv = ["flmarket", "run", "quickstart", "--quiet"]
    main = importlib.import_module("flmarket.cli.main").main
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.setprofile(Walk())
        main()
