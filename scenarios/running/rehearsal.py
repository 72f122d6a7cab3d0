"""Plug-ins are rehearsed: a process of its own does with them what this one is about to do.

A plug-in may end its process (``os._exit``, a crash in compiled code) or never return. It then ends that process, and
this one reports it. Where a command names nothing but flmarket's own parts, no process is started.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from os import PathLike
from typing import Any, Self

from fl.datasets import DATASETS
from fl.errors import InputError
from fl.plugins import Registry
from learning.policy import POLICIES
from scenarios.plugins import PluginFile, any_foreign
from scenarios.running.process import Worker
from scenarios.running.worker import checking, loading

LIMIT = 60.0
"""Seconds in which a file must load, or a policy be imported."""

LONG = 600.0
"""Seconds in which a data set must be made, and anything else that a scenario names be created."""

_UNUSABLE = "a plug-in cannot be loaded"


class Rehearsal:
    """A process that does with plug-ins what this one is about to do. It starts when it is needed first.

    Errors other than the end of that process show when this process does the same. All methods raise InputError if
    something ended the process, or did not return.
    """

    def __init__(self, worker: Worker | None = None, notify: Callable[[str], None] = lambda _: None) -> None:
        """Start nothing yet.

        Args:
            worker: a process that was started already and is not listened to; whoever started it ends it.
            notify: called with a line about what takes long.
        """
        self._worker, self._own, self._notify = worker, worker is None, notify

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._own and self._worker is not None:
            self._worker.__exit__()

    def load(self, files: Sequence[str | PathLike[str]]) -> None:
        """Load plug-in files. Raises PluginError for one that cannot be read."""
        if files:
            self._try(loading([asdict(PluginFile.read(file)) for file in files]), LIMIT, _UNUSABLE)

    def policies(self, choices: Iterable[tuple[str, str | None]]) -> None:
        """Import policies by name, and let each return the digest of its agent, given its checkpoint.

        Those that come with flmarket are left out; one that is unknown is left to whoever asks for it.
        """
        if theirs := [choice for choice in dict.fromkeys(choices) if not POLICIES.is_builtin(choice[0])]:
            self._try(loading(policies=theirs), LIMIT, _UNUSABLE)

    def imports(self, kind: str, name: str) -> None:
        """Do what a listing does with a plug-in of an installed package: import it, and ask for its summary.

        A policy also returns the digest of its agent.
        """
        order = loading(policies=[(name, None)] if kind == POLICIES.kind else [], imports=[(kind, name)])
        self._try(order, LIMIT, _UNUSABLE)

    def datasets(self) -> None:
        """Make the data sets of the plug-in files that are loaded here."""
        if DATASETS.registered:
            self._try(loading(datasets=list(DATASETS.registered)), LONG, _UNUSABLE)

    def check(self, sources: Iterable[str], overrides: Sequence[str], *, create: bool = False) -> None:
        """Check scenario files, which makes the data sets that they name, if there is any plug-in.

        Args:
            sources, overrides: see ``scenarios.loader.load``.
            create: also create all that a run creates. Nothing is downloaded.
        """
        for source in sources if any_foreign() else ():
            self._try(checking(source, overrides, create=create), LONG, f"{source}: cannot be checked")

    def _try(self, order: str, limit: float, problem: str) -> None:
        self._worker = self._worker or Worker()
        if not self._worker.answers(order, limit, self._notify):
            raise InputError(f"{problem}: {self._worker.obituary()}")


def broken(*registries: Registry[Any]) -> dict[str, dict[str, str]]:
    """Return why plug-ins of installed packages cannot be imported without ending the process, by kind and name.

    ``Registry.listing`` takes what is known of its kind.
    """
    found: dict[str, dict[str, str]] = {registry.kind: {} for registry in registries}
    left = [(it.kind, name) for it in registries for name in it.names() if it.is_of_package(name)]
    while left:
        with Rehearsal() as rehearsal:  # whatever ends it leaves the rest to another one
            try:
                while left:
                    rehearsal.imports(*left[0])
                    del left[0]
            except InputError as error:
                kind, name = left.pop(0)
                found[kind][name] = str(error)
    return found
