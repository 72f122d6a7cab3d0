"""The protocol between a runner process (``serve``) and its parent: JSON, one object on a line.

The parent sends ``start`` (see ``Start``), then commands; the runner answers with messages. Both are listed below.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

VERSION = 2

# Commands to the runner, ``{"do": ...}`` with
#
#     pause, resume      at the next end of a round
#     step               play one round and pause again
#     speed, rounds      at most that many rounds in a second; null is as fast as it can
#     quit               leave at the next end of a round; an end of the input means the same
#
# Messages from the runner, each with ``"type"``:
#
#     opening   before hello: the runner begins a step of its start; ``text`` says which
#     hello     once the run's directory is there and before the first round; see ``Hello``
#     round     a round is over and on disk; ``text`` has its lines of the three tables. A resumed run
#               first sends the rounds that it has kept
#     state     answers a command: paused, speed
#     slow      a policy takes long, maybe for ever; ``text`` says which one
#     end       the last message; status is complete, failed or stopped, and error is the reason

GRACE = 2.0  # seconds that a round in progress gets to end after ``quit``; whatever is on disk by then is whole rounds


class ProtocolError(ValueError):
    """A line is not a message of this protocol and version."""


@dataclass(frozen=True, slots=True)
class Start:
    """The message that starts a run."""

    scenario: str  # the scenario file's text
    file: str  # what problems call it
    out: str  # where run directories go
    policy: str | None = None  # for every service, or None for those of the scenario
    point: int = 0  # which scenario of its sweep
    seed: int = 0  # the run's seed
    fresh: bool = False  # start over what is there
    paused: bool = False  # wait for ``resume`` or ``step`` before the first round that is not hurried through
    speed: float | None = None  # rounds in a second at most; None is as fast as it can
    hurry: int = 0  # play this many rounds without a pause or a brake first
    # the directory of the run that this one is a fork of: the ``hurry`` rounds that they share are taken from its
    # checkpoints, or played once and kept for other forks
    origin: str | None = None
    # the plug-in files to load before anything else; see ``scenarios.plugins.packed``
    plugins: Sequence[Mapping[str, str]] = ()
    version: int = VERSION

    def line(self) -> str:
        """Return the line to send."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, line: str) -> "Start":
        """Read the first line that a runner gets."""
        try:
            start = cls(**json.loads(line))
        except (ValueError, TypeError) as error:
            raise ProtocolError(f"not a start of protocol {VERSION}: {line[:200]!r}") from error
        if start.version != VERSION:
            raise ProtocolError(f"asked for protocol {start.version}, this is {VERSION}")
        return start


@dataclass(frozen=True, slots=True)
class Hello:
    """The message that says what runs, and where its files are."""

    directory: str  # the run's directory
    scenario: str  # as resolved; the run's own scenario.toml
    hash8: str  # the hash in the name of the run's directory
    policy: str  # the run's label: a policy for all services, or ``as-configured``
    seed: int  # the run's seed
    sweep: Mapping[str, Any]  # the values of the sweep point, by key
    version: int = VERSION


def message(type_: str, **content: Any) -> str:
    """Return the line of a message from the runner."""
    return json.dumps({"type": type_, **content}, separators=(",", ":"))


def parse(line: str) -> Mapping[str, Any]:
    """Read a line from the runner."""
    try:
        found = json.loads(line)
    except ValueError as error:
        raise ProtocolError(f"not JSON: {line[:200]!r}") from error
    if not isinstance(found, dict) or not isinstance(found.get("type"), str):
        raise ProtocolError(f"not a message: {line[:200]!r}")
    return found
