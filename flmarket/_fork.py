"""Forks of runs, the what-ifs of notebooks and scripts."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from operator import index
from typing import TYPE_CHECKING, Any

from flmarket.api import Place, require_no_plugin_file
from flmarket.core.errors import InputError
from flmarket.core.home import expanded
from flmarket.core.words import in_python, pythonic

if TYPE_CHECKING:
    from flmarket.analysis.what_if.fork import Fork


@in_python()
def fork(
    run: Place,
    round_: int,
    changes: "Mapping[str, Any] | Sequence[Mapping[str, Any]]",
    *,
    out: Place | None = None,
    jobs: int = 1,
    workers: int | None = None,
    fresh: bool = False,
    progress: bool = True,
) -> "list[Fork]":
    """Continue a run from one of its rounds with something changed; return each fork with its original.

    A fork is a run like any other. It begins at the original's newest checkpoint before that round, or
    at round 1.

    Args:
        run: the run's directory.
        round_: the first round that is changed.
        changes: new values by key: ``services.NAME.budget``, ``services.NAME.policy`` (a name, or a class of your own),
            ``market.mechanism``, ``clients.cores``, ``clients.offline``; or several of these, one fork each.
        out: the folder for the forks' run directories; that of the run if not given.
        jobs: forks at a time, each in a process of its own.
        workers: training threads of each fork; cores divided by jobs if not given.
        fresh: start over, even if a fork is complete.
        progress: report progress on stderr.

    Raises:
        InputError: the run, the round or a change cannot be used, or the run cannot be continued on this machine.
        BatchFailed: a fork failed.
    """
    require_no_plugin_file("fork")
    from flmarket.analysis.what_if.fork import fork as play
    from learning.policy import register_classes

    several = isinstance(changes, Iterable) and not isinstance(changes, Mapping | str)
    wishes: list[Any] = list(changes) if several else [changes]
    if wrong := [wish for wish in wishes if not isinstance(wish, Mapping)]:
        raise InputError(f"changes: must be a mapping such as {{'clients.cores': 2}}, or several, not {wrong[0]!r}")
    named = [
        {key: register_classes([value])[0] if isinstance(value, type) else value for key, value in wish.items()}
        for wish in wishes
    ]
    with suppress(TypeError):  # no integer; ``play`` says which ones there are
        round_ = index(round_)  # NumPy's are welcome
    return play(
        expanded(run),
        round_,
        named,
        out=None if out is None else expanded(out),
        jobs=jobs,
        workers=workers,
        fresh=fresh,
        progress=progress,
        words=pythonic,
    )
