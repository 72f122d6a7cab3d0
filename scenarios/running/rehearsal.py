"""Plug-ins are rehearsed: a process of its own loads and creates them before this one does.

A plug-in may end its process (``os._exit``, a crash in compiled code) or never return. It then ends that process, and
this one reports it. Where a command names nothing but flmarket's own parts, no process is started.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from os import PathLike
from typing import Self

from fl.errors import InputError
from learning.policy import POLICIES
from scenarios.file.schema import Scenario
from scenarios.plugins import PluginFile
from scenarios.running.process import Worker
from scenarios.running.worker import creation, loading

LIMIT = 60.0
"""Seconds in which a plug-in must load, or all parts of a scenario must be created."""


class Rehearsal:
    """A process that does with plug-ins what this one is about to do. It starts when it is needed first.

    Errors other than the end of that process show when this process does the same.
    """

    def __init__(self, worker: Worker | None = None) -> None:
        """Start nothing yet.

        Args:
            worker: a process that was started already and is not listened to; whoever started it ends it.
        """
        self._worker, self._own = worker, worker is None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._own and self._worker is not None:
            self._worker.__exit__()

    def load(self, files: Sequence[str | PathLike[str]]) -> None:
        """Load plug-in files.

        Raises:
            PluginError: a file cannot be read.
            InputError: one ended the process, or did not return.
        """
        if files:
            self._try(loading([asdict(PluginFile.read(file)) for file in files]), "a plug-in cannot be loaded")

    def policies(self, choices: Iterable[tuple[str, str | None]]) -> None:
        """Import policies by name, and let each return the digest of its agent (or of None: it has no checkpoint).

        Those that come with flmarket are left out; one that is unknown is left to whoever asks for it.

        Raises:
            InputError: one ended the process, or did not return.
        """
        if theirs := [choice for choice in dict.fromkeys(choices) if not POLICIES.is_builtin(choice[0])]:
            self._try(loading([], theirs), "a plug-in cannot be loaded")

    def create(self, scenario: Scenario) -> None:
        """Create all that a run of a scenario (without a sweep) creates. Nothing is downloaded.

        Raises:
            InputError: this ended the process, or did not return.
        """
        self._try(creation(scenario), f"scenario {scenario.name!r} cannot be played")

    def _try(self, order: str, problem: str) -> None:
        self._worker = self._worker or Worker()
        if not self._worker.answers(order, LIMIT):
            raise InputError(f"{problem}: {self._worker.obituary()}")
