"""Forks of runs, the what-ifs of notebooks and scripts."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from operator import index
from typing import TYPE_CHECKING, Annotated, Any

from annotated_doc import Doc

from flmarket.api import require_no_plugin_file
from flmarket.core.declared import told_by
from flmarket.core.errors import InputError
from flmarket.core.files import expanded
from learning.policy import POLICIES
from scenarios.running.run_options import Place, PlayOptions

if TYPE_CHECKING:
    from flmarket.analysis.what_if.fork import Fork


@dataclass(frozen=True)
class Forks(PlayOptions):
    """The arguments of ``fork``."""

    run: Annotated[Place, Doc("The run's directory.")]
    round_: Annotated[int, Doc("The first round that is changed.")]
    changes: Annotated[
        "Mapping[str, Any] | Sequence[Mapping[str, Any]]",
        Doc(
            "New values by key: ``services.NAME.budget``, ``services.NAME.policy`` (a name, or a class of your own), "
            "``market.mechanism``, ``clients.cores``, ``clients.offline``; or several of these, one fork each."
        ),
    ]
    _: KW_ONLY
    out: Annotated[Place | None, Doc("The folder for the forks' run directories; that of the run if not given.")] = None
    progress: Annotated[bool, Doc("Report progress on stderr.")] = True


@told_by(Forks)
def fork(forks: Forks) -> "list[Fork]":
    """Continue a run from one of its rounds with something changed; return each fork with its original.

    A fork is a run like any other. It begins at the original's newest checkpoint before that round, or
    at round 1.

    Raises:
        InputError: the run, the round or a change cannot be used, or the run cannot be continued on this machine.
        BatchFailed: a fork failed.
    """
    require_no_plugin_file("fork")
    from flmarket.analysis.what_if.fork import fork as play

    changes, round_ = forks.changes, forks.round_
    several = isinstance(changes, Iterable) and not isinstance(changes, Mapping | str)
    wishes: list[Any] = list(changes) if several else [changes]
    if wrong := [wish for wish in wishes if not isinstance(wish, Mapping)]:
        raise InputError(f"changes: must be a mapping such as {{'clients.cores': 2}}, or several, not {wrong[0]!r}")
    named = [
        {key: POLICIES.names_of([value])[0] if isinstance(value, type) else value for key, value in wish.items()}
        for wish in wishes
    ]
    with suppress(TypeError):  # no integer; ``play`` says which ones there are
        round_ = index(round_)  # NumPy's are welcome
    out = None if forks.out is None else expanded(forks.out)
    return play(expanded(forks.run), round_, named, forks, out, progress=forks.progress)
