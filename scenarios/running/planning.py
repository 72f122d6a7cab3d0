"""The runs of a batch: their order, their directories, and which of them are still to be played."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from operator import index
from pathlib import Path
from typing import Any

from flmarket.core.errors import InputError
from flmarket.core.files import expanded
from flmarket.core.plugins import PluginError
from flmarket.core.text import counted
from learning.policy import ALL, AS_CONFIGURED, POLICIES
from scenarios.build import Shelf, agents_of, inputs_of
from scenarios.file.differences import ScenarioName, ScenarioValues, names_among
from scenarios.file.policy_choice import PolicyChoice
from scenarios.file.schema import Scenario
from scenarios.loader import digest_of, hashed, points, with_policy, with_values
from scenarios.logs.columns import tables_in
from scenarios.logs.directory import FRESH, META, PLAY_CHANGED, ChangedError, Fresh, RunDirectory, RunDirectoryError
from scenarios.logs.identity import require_itself
from scenarios.logs.run_state import RunState
from scenarios.playable import obstacles
from scenarios.plugin_files import other_version, plugins_of
from scenarios.running.batch_run import Run
from scenarios.running.run_options import LARGEST_SEED, MOST_SEEDS, RunOptions


def expand(policies: Sequence[str], scenarios: Sequence[Scenario], shelf: Shelf) -> tuple[list[str], list[str]]:
    """Return policies with ``all`` replaced by every one that can play, and a note on each of the others.

    Raises:
        InputError: none can.
    """
    playing = [name for name in policies if name != ALL]
    notes: list[str] = []
    if len(playing) == len(policies):
        return playing, notes
    for name in POLICIES.names():
        obstacle = next((text for scenario in scenarios for text in _obstacles(scenario, name, shelf)), None)
        if obstacle is None:
            playing.append(name)
        else:
            notes.append(f"policy {name} is left out: {obstacle}")
    if not playing:
        raise InputError(f"no policy can play here; {notes[0]}")
    return playing, notes


def _obstacles(scenario: Scenario, policy: str, shelf: Shelf) -> Iterator[str]:
    try:
        for point in points(with_policy(scenario, policy)):
            yield from (obstacle.message for obstacle in obstacles(shelf, point.scenario))
    except PluginError as error:  # it cannot be loaded
        yield str(error)


def plan_batch(
    scenarios: Sequence[Scenario],
    policies: Sequence[str],
    seeds: Iterable[int],
    options: RunOptions,
    shelf: Shelf,
    note: Callable[[str], None] = lambda _: None,
) -> list[Run]:
    """Return every run of a batch, as its options ask for them. Arguments as for ``plan``; a policy may be ``all``."""
    policies, left_out = expand(policies, scenarios, shelf)
    for text in left_out:
        note(text)
    as_asked = [with_values(scenario, options.values) for scenario in scenarios]
    runs = plan(as_asked, policies, seeds, expanded(options.out), shelf, note)
    if not runs[options.which]:
        raise InputError(f"part {options.part}: the batch has no more than {counted(len(runs), 'run')}")
    return runs[options.which]


def plan(
    scenarios: Iterable[Scenario],  # each may have a sweep
    # one run each, with every service using it (``PolicyChoice.parse``); none means the policies that the
    # scenario names
    policies: Iterable[str],
    seeds: Iterable[int],  # one run each
    out: Path,  # where run directories go
    shelf: Shelf,  # gives the data sets, whose digests are part of a run's hash
    note: Callable[[str], None] = lambda _: None,  # called with what the user should know
) -> list[Run]:
    """Return every run of a batch, each once: what is named twice is played once."""
    scenarios, policies, seeds = list(scenarios), dict.fromkeys(policies), dict.fromkeys(_seeds(seeds))
    if not scenarios:
        raise InputError("no scenario is given; name at least one")
    runs: dict[Path, Run] = {}
    repeated: dict[str, None] = {}
    for scenario in scenarios:
        points_with = {policy: points(with_policy(scenario, policy)) for policy in policies if policy != AS_CONFIGURED}
        for place_in_sweep, point in enumerate(points(scenario)):
            # The scenario's own policies count, those of --policy do not: runs to be compared share a directory.
            text = hashed(point.scenario, inputs_of(point.scenario, shelf))
            hash8 = digest_of(text)
            for policy in policies or (AS_CONFIGURED,):
                chosen, label = point.scenario, AS_CONFIGURED
                if policy in points_with:
                    chosen = points_with[policy][place_in_sweep].scenario
                    label = PolicyChoice.parse(policy).label_in(chosen)
                inputs = inputs_of(chosen, shelf)
                for seed in seeds:
                    place = RunDirectory.place(out, scenario.name, hash8, label, seed)
                    run = Run(chosen, label, seed, place, hash8, point.values, place_in_sweep, None, inputs, text)
                    if runs.setdefault(place.path, run) is not run:
                        repeated[run.label] = None
    if repeated:
        note(f"named more than once, and played once: {', '.join(repeated)}")
    return _with_names(list(runs.values()))


def _with_names(runs: Sequence[Run]) -> list[Run]:
    """Name runs by what their scenarios differ in, and by the hash, too, where these would be called the same."""
    groups: dict[str, dict[str, Run]] = defaultdict(dict)
    for run in runs:
        groups[run.group][run.digest] = run
    names = {
        group: names_among({digest: ScenarioValues.of(run.scenario, run.policy) for digest, run in twins.items()})
        for group, twins in groups.items()
        if len(twins) > 1
    }
    return [replace(run, name=_name(run, names[run.group][run.digest])) if run.group in names else run for run in runs]


def _name(run: Run, among: ScenarioName) -> str:
    name = run.scenario.name if among.alone else f"{run.scenario.name}-{run.digest}"
    return f"{name} {among.text}".rstrip()


def _seeds(seeds: Any) -> list[int]:
    try:
        given: list[Any] = [seeds] if isinstance(seeds, str) else list(islice(seeds, MOST_SEEDS + 1))
        checked = [index(seed) for seed in given]
    except TypeError as error:
        raise InputError(f"seeds = {seeds!r}: must be integers of at least 0, or how many of them") from error
    if len(checked) > MOST_SEEDS:
        raise InputError(f"seeds: these are more than {MOST_SEEDS:,}; name fewer")
    if any(seed > LARGEST_SEED for seed in checked):
        raise InputError(f"seeds: one is too large; a seed is an integer from 0 to {LARGEST_SEED}")
    if any(seed < 0 for seed in checked):
        raise InputError(f"seeds: {min(checked)} is negative; a seed is an integer of at least 0")
    if not checked:
        raise InputError("no seed is given; name at least one")
    return checked


def split_by_completion(runs: Iterable[Run], *, fresh: Fresh = False) -> tuple[list[Run], list[Run]]:
    """Return the runs that are to be played, and those that are complete, whose checkpoints are dropped.

    Raises:
        ChangedError: a complete run was played with another agent or plug-in, and ``fresh`` does not say to play it.
        RunDirectoryError: a complete run is damaged, or is another one than its directory says.
    """
    # All directories are looked at before anything is played: a run that cannot be kept is known at once, not after the
    # hours that those before it take.
    todo: list[Run] = []
    complete: list[Run] = []
    agents: dict[tuple[str, str], dict[str, str]] = {}  # they do not depend on the seed, and are files to be read
    for run in runs:
        if fresh is not True and run.directory.state is RunState.COMPLETE:
            key = run.digest, run.policy
            if key not in agents:
                agents[key] = agents_of(run.scenario)
            plugins = plugins_of(run.scenario)
            try:
                _require_same(run, agents[key], plugins)
            except ChangedError:
                if not fresh:
                    raise
                todo.append(run)
                continue
            run.directory.drop_checkpoints()
            complete.append(run)
        else:
            todo.append(run)
    return todo, complete


def _require_same(run: Run, agents: Mapping[str, str], plugins: Mapping[str, Mapping[str, str]]) -> None:
    """Check that the complete run in a directory is the one that is asked for: undamaged, and played with the same.

    The path does not tell the digests of agents that ``--policy`` chose, nor those of plug-ins.
    """
    directory = run.directory
    directory.require_whole(digests=True)
    for table in tables_in(directory.path).values():
        table.check(directory.path)
    meta = directory.meta()
    for key, wanted in (("hash", run.digest), ("policy", run.policy), ("seed", run.seed)):
        if meta[key] != wanted:
            raise RunDirectoryError(
                f"{directory.path / META}: belongs to a run with {key} {meta[key]!r}, not {wanted!r}; {FRESH}"
            )
    require_itself(directory, run.hashed)
    if meta["agents"] != agents:
        raise ChangedError(f"{directory.path / META}: belongs to a run with another learned agent; {PLAY_CHANGED}")
    played = meta["plugins"]
    for thing in sorted({*played, *plugins}):
        if played.get(thing, {}).get("sha256") != plugins.get(thing, {}).get("sha256"):
            raise ChangedError(f"{directory.path / META}: belongs to a run with {other_version(thing)}; {PLAY_CHANGED}")
