"""The runs and trainings on this machine as entries of the home screen, and the runs that it offers to start."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from learning.policy import AS_CONFIGURED, POLICIES
from scenarios.builtin import builtin_text
from scenarios.file.schema import Scenario
from scenarios.loader import dumps, load
from scenarios.logs.directory import SCENARIO, RunDirectory
from scenarios.running.steering import Start
from tui.state.batch_folder import read_values, scenario_names
from tui.state.catalogue import MOST_RUNS, SEEDS, Entry, age, entries_with, own_files
from tui.state.pace import to_watch
from tui.state.run_standing import run_label, scenario_name, standing
from tui.state.training_log import find_logs

PAPER_POLICIES = ("random", "lcfa", "hqfa", "mahdrl-paper")
"""The policies of the paper's market, as the home screen offers it to play."""


def entries(folder: Path, out: Path) -> list[Entry]:
    """Return all entries."""
    return entries_with([*own_files(folder), *trainings(folder), *recent_runs(out)])


def trainings(folder: Path) -> list[Entry]:
    """Return the trainings whose agents are in a folder, or in ``agents/`` there; the newest first."""
    logs = [log for place in (folder, folder / "agents") if place.is_dir() for log in find_logs(place)]
    now = time.time()
    return [Entry("training", log.stem, log, age=age(now - _mtime(log))) for log in sorted(logs, key=_mtime)[::-1]]


def recent_runs(out: Path) -> list[Entry]:
    """Return the run directories below a folder, the newest first."""
    files = _scenario_files(out)[:MOST_RUNS]
    names, now = _scenario_names(files), time.time()
    runs = [standing(file.parent) for file in files]
    return [
        Entry(
            "run",
            run_label(names.get(run.path.parents[1], run.scenario), run.policy, run.seed),
            run.path,
            run.state,
            run.result,
            age(now - run.changed),
        )
        for run in runs
    ]


def all_runs(out: Path) -> list[tuple[str, Path]]:
    """Return the name and directory of every run below a folder, the newest first; none of them is read."""
    return [(" · ".join(path.parent.relative_to(out).parts), path.parent) for path in _scenario_files(out)]


def find_run(out: Path, text: str, name: str, policy: str, seed: int) -> RunDirectory | None:
    """Return the directory of a resolved scenario's run, if it exists."""
    for path in out.glob(f"{name}-*/{policy}/seed-{seed:04d}/{SCENARIO}"):
        try:
            if path.read_text(encoding="utf-8") == text:
                return RunDirectory(path.parent)
        except (OSError, UnicodeError):
            continue
    return None


def _scenario_files(out: Path) -> list[Path]:
    """Return the scenario of every run below a folder, the newest first."""
    return sorted(out.glob(f"*/*/seed-*/{SCENARIO}"), key=_mtime, reverse=True)


def _scenario_names(files: Iterable[Path]) -> dict[Path, str]:
    """Return for the folders of different scenarios of one name what to call them: by a value, or by their hash."""
    one = {path.parents[2]: path for path in files}  # all runs below a folder have the same, but for policies
    plain = {folder: scenario_name(folder.name) for folder in one}
    names = Counter(plain.values())
    twins = {folder: path for folder, path in one.items() if names[plain[folder]] > 1}
    called = scenario_names(
        {folder: read for folder, path in twins.items() if (read := read_values(path.parent)) is not None}
    )
    return {folder: called.get(folder) or folder.name for folder in twins}


def _mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


Starts = Sequence[tuple[Start, str]]  # each with its run's label


def one_to_watch(out: Path) -> Starts:
    name = "quickstart"
    speed = to_watch(load(name).rounds)
    return [(Start(builtin_text(name), name, str(out), speed=speed), run_label(name, AS_CONFIGURED, Start.seed))]


def paper(out: Path) -> Starts:
    """Return the paper's market played by its policies on fitted learning curves, as docs/paper.md has it."""
    text = dumps(load("paper", ["training.backend=surrogate"]))
    return [
        (Start(text, "paper", str(out), policy, seed=seed), run_label("paper", policy, seed))
        for policy in PAPER_POLICIES
        for seed in SEEDS
    ]


def policies_of(scenario: Scenario) -> list[str]:
    """Return all policies: those of the paper and those that the scenario names first, as most look for these."""
    own = [service.policy for service in scenario.services]
    names = POLICIES.names()
    return list(dict.fromkeys(name for name in (*PAPER_POLICIES, *own, *names) if name in names))
