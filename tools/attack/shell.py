"""The command line as a process, and what may be expected of it in any case."""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from flmarket.core.installation import command

PATIENCE = 300.0
"""Seconds after which a command counts as hanging."""

TINY = ("--rounds", "4", "--set", "training.backend=surrogate")
TABLES = ("scenario.toml", "rounds.csv", "offers.csv", "events.csv")


@dataclass(frozen=True, slots=True)
class Done:
    """The end of a command."""

    arguments: Sequence[str]
    status: int
    out: str
    errors: str

    def wrong(self, *statuses: int) -> Iterator[str]:
        """Yield what no command may do: end otherwise than announced, show a traceback, or send a terminal escapes."""
        line = f"flmarket {' '.join(map(repr, self.arguments))}"
        if self.status not in (statuses or (0, 1, 2)):
            yield f"{line}: ended with status {self.status}: {self.errors[-2000:]}"
        if "Traceback (most recent call last)" in self.out + self.errors:
            yield f"{line}: shows a traceback: {self.errors[-2000:]}"
        if "\x1b" in self.out + self.errors:
            yield f"{line}: prints an escape: {(self.out + self.errors)[-2000:]!r}"
        if self.status and not (self.out + self.errors).strip():
            yield f"{line}: ended with status {self.status} and no word"


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a command: ours, without colours."""
    return {**os.environ, "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "200", **(extra or {})}


def start(*arguments: str, folder: Path, extra: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
    """Start a command in a session of its own."""
    return subprocess.Popen(
        [*command("flmarket.cli.main"), *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=environment(extra),
        start_new_session=True,
    )


def end(process: "subprocess.Popen[str]", arguments: Sequence[str] = ()) -> Done:
    """Wait for a command; one that hangs is killed and has the status -9."""
    try:
        out, errors = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, errors = process.communicate()
        errors += f"\n(killed after {PATIENCE:.0f} s)"
    return Done(arguments, process.returncode, out, errors)


def flmarket(*arguments: str, folder: Path, extra: Mapping[str, str] | None = None) -> Done:
    """Run a command to its end."""
    return end(start(*arguments, folder=folder, extra=extra), arguments)


def results(out: Path) -> dict[str, bytes]:
    """Return the files of all runs below a folder that depend on scenario and seed alone, by their paths."""
    return {
        path.relative_to(out).as_posix(): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.name in TABLES and path.is_file()
    }


def differences(expected: Mapping[str, bytes], found: Mapping[str, bytes]) -> Iterator[str]:
    """Yield what differs between two folders of runs."""
    for name in sorted({*expected, *found}):
        if expected.get(name) != found.get(name):
            state = "is missing" if name not in found else "is new" if name not in expected else "has other bytes"
            yield f"{name} {state}"
