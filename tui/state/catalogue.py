"""The entries of the home screen: the scenarios and runs found on this machine.

Scenarios are listed before what runs and trainings need is imported: the first screen should have its list at once.
"""

import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from flmarket.core.errors import InputError
from flmarket.core.files import BYTE_ORDER_MARK, read_regular
from scenarios.builtin import builtin_names, builtin_path, builtin_text

if TYPE_CHECKING:
    from scenarios.file.schema import Scenario
    from scenarios.logs.directory import RunDirectory
    from scenarios.running.steering import Start

MOST_RUNS = 200

POLICIES = ("random", "lcfa", "hqfa", "mahdrl-paper")
SEEDS = range(3)
"""The policies and the seeds of the paper's market, as the home screen offers it to play."""

Starts = Sequence[tuple["Start", str]]  # each with its run's label


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the home screen's list."""

    kind: str  # beginning, built-in, file, training or run
    name: str  # its name in the list
    path: Path  # the scenario file, the training's log, or the run's directory
    # of a run, its ``RunState``; of a file, whether it has problems. An entry stays the same entry when its state
    # changes.
    state: str = field(default="", compare=False)
    result: str = field(default="", compare=False)  # of a run, in a few words
    age: str = field(default="", compare=False)  # of a run or a training, in a few words
    about: str = field(default="", compare=False)  # of a scenario, its description; of a beginning, what it does

    @property
    def title(self) -> str:
        """Its line in the list: the name, the state, and what there is to say about a run."""
        words = ", ".join(filter(None, (self.state, self.result, self.age)))
        return f"{self.name} ({words})" if words else self.name

    @property
    def is_run(self) -> bool:
        return self.kind == "run"

    @property
    def scenario_file(self) -> Path:
        from scenarios.logs.directory import SCENARIO

        return self.path / SCENARIO if self.is_run else self.path


def beginnings() -> list[Entry]:
    """Return what someone may begin with who has no run, training or scenario file yet."""
    return [
        Entry("beginning", name, builtin_path(scenario), about=about)
        for name, scenario, about in (
            ("Watch one", "quickstart", "Three services compete for 16 clients, at five rounds a second; no download."),
            (
                "Reproduce the paper",
                "paper",
                f"Its services and policies with {len(SEEDS)} seeds, compared. Fitted learning curves stand in for "
                "training, so it takes less than a minute; r trains on images.",
            ),
            ("Write your own", "quickstart", "A form with all that a market has, to begin with that of quickstart."),
        )
    ]


def one_to_watch(out: Path) -> Starts:
    from learning.policy import AS_CONFIGURED
    from scenarios.loader import load
    from scenarios.running.steering import Start
    from tui.state.run_standing import run_label
    from tui.state.seek import to_watch

    name = "quickstart"
    speed = to_watch(load(name).rounds)
    return [(Start(builtin_text(name), name, str(out), speed=speed), run_label(name, AS_CONFIGURED, Start.seed))]


def paper(out: Path) -> Starts:
    """Return the paper's market played by its policies on fitted learning curves, as docs/paper.md has it."""
    from scenarios.loader import dumps, load
    from scenarios.running.steering import Start
    from tui.state.run_standing import run_label

    text = dumps(load("paper", ["training.backend=surrogate"]))
    return [
        (Start(text, "paper", str(out), policy, seed=seed), run_label("paper", policy, seed))
        for policy in POLICIES
        for seed in SEEDS
    ]


def policies_of(scenario: "Scenario") -> list[str]:
    """Return all policies: those of the paper and those that the scenario names first, as most look for these."""
    from learning.policy import POLICIES as INSTALLED

    own = [service.policy for service in scenario.services]
    names = INSTALLED.names()
    return list(dict.fromkeys(name for name in (*POLICIES, *own, *names) if name in names))


def scenarios(folder: Path, out: Path) -> list[Entry]:
    """Return what can be listed at once: with the scenarios what to begin with, where no run seems to be there."""
    files = own_files(folder)
    own = files or any(out.glob("*/*/seed-*")) or any(any(it.glob("*.csv")) for it in (folder, folder / "agents"))
    return [*([] if own else beginnings()), *builtins(), *files]


def entries(folder: Path, out: Path) -> list[Entry]:
    """Return all entries."""
    own = [*own_files(folder), *trainings(folder), *recent_runs(out)]
    return [*([] if own else beginnings()), *builtins(), *own]


def builtins() -> list[Entry]:
    """Return the built-in scenarios, the one for beginners first."""
    names = sorted(builtin_names(), key=lambda name: (name != "quickstart", name))
    about = (tomllib.loads(builtin_text(name))["description"] for name in names)
    return [Entry("built-in", name, builtin_path(name), about=words) for name, words in zip(names, about, strict=True)]


def own_files(folder: Path) -> list[Entry]:
    """Return the scenario files in a folder, without other TOML files; those that are no valid TOML are marked."""
    found = []
    for path in sorted(folder.glob("*.toml")):
        try:
            text = read_scenario(path).removeprefix(BYTE_ORDER_MARK)
        except InputError:
            continue
        about = ""
        try:
            values = tomllib.loads(text)
            is_scenario, state, about = "services" in values, "", str(values.get("description", ""))
        except (ValueError, RecursionError):  # it may be one that is being written
            is_scenario, state = "services" in text, "has problems"
        if is_scenario:
            found.append(Entry("file", path.name, path, state, about=" ".join(about.split())))
    return found


def read_scenario(file: Path) -> str:
    """Return a scenario file's text, with its byte-order mark and line ends."""
    try:
        return read_regular(file).decode()
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}") from error
    except UnicodeError as error:
        raise InputError(f"{file}: cannot be read: it is not UTF-8 text") from error


def trainings(folder: Path) -> list[Entry]:
    """Return the trainings whose agents are in a folder, or in ``agents/`` there; the newest first."""
    from tui.state.training_log import find_logs

    logs = [log for place in (folder, folder / "agents") if place.is_dir() for log in find_logs(place)]
    now = time.time()
    return [Entry("training", log.stem, log, age=age(now - _mtime(log))) for log in sorted(logs, key=_mtime)[::-1]]


def recent_runs(out: Path) -> list[Entry]:
    """Return the run directories below a folder, the newest first."""
    found = _scenario_files(out)[:MOST_RUNS]
    names = _scenario_names(found)
    return [_run(path.parent, names) for path in found]


def all_runs(out: Path) -> list[tuple[str, Path]]:
    """Return the name and directory of every run below a folder, the newest first; none of them is read."""
    return [(" · ".join(path.parent.relative_to(out).parts), path.parent) for path in _scenario_files(out)]


def _scenario_files(out: Path) -> list[Path]:
    """Return the scenario of every run below a folder, the newest first."""
    from scenarios.logs.directory import SCENARIO

    return sorted(out.glob(f"*/*/seed-*/{SCENARIO}"), key=_mtime, reverse=True)


def _scenario_names(files: Iterable[Path]) -> dict[Path, str]:
    """Return for the folders of different scenarios of one name what to call them: by a value, or by their hash."""
    from tui.state.batch_folder import market_names, read_values
    from tui.state.run_standing import scenario_name

    one = {path.parents[2]: path for path in files}  # all runs below a folder have the same, but for policies
    plain = {folder: scenario_name(folder.name) for folder in one}
    names = Counter(plain.values())
    twins = {folder: path for folder, path in one.items() if names[plain[folder]] > 1}
    markets = market_names(
        {folder: read for folder, path in twins.items() if (read := read_values(path.parent)) is not None}
    )
    return {folder: f"{plain[folder]} ({markets[folder]})" if folder in markets else folder.name for folder in twins}


def _run(path: Path, names: Mapping[Path, str]) -> Entry:
    from tui.state.run_standing import run_label, standing

    found = standing(path)
    scenario = names.get(path.parents[1], found.scenario)
    name = run_label(scenario, found.policy, found.seed)
    return Entry("run", name, path, found.state, found.result, age(time.time() - found.changed))


def age(seconds: float) -> str:
    """Return how long ago something was, in the largest unit: ``3 min ago``."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit} ago"
    return "just now"


def _mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def find_run(out: Path, text: str, name: str, policy: str, seed: int) -> "RunDirectory | None":
    """Return the directory of a resolved scenario's run, if it exists."""
    from scenarios.logs.directory import SCENARIO, RunDirectory

    for path in out.glob(f"{name}-*/{policy}/seed-{seed:04d}/{SCENARIO}"):
        try:
            if path.read_text(encoding="utf-8") == text:
                return RunDirectory(path.parent)
        except (OSError, UnicodeError):
            continue
    return None
