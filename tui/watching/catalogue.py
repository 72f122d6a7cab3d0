"""What the home screen can offer: scenarios and runs found on this machine, and each in words."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from des.money import MICRO
from scenarios.file.schema import Scenario
from scenarios.loader import ScenarioError, builtin_names, builtin_path, load, parse, points
from scenarios.logs.directory import META, SCENARIO, RunDirectory, State, StoreError
from scenarios.logs.reading import LogError
from tui.look import percent, sign
from tui.watching.tail import last_services

MOST_RUNS = 200


@dataclass(frozen=True, slots=True)
class Entry:
    """Something to choose on the home screen.

    Attributes:
        kind: built-in, file or run.
        name: as it is listed.
        path: the scenario file, or the run's directory.
    """

    kind: str
    name: str
    path: Path

    @property
    def is_run(self) -> bool:
        """Whether it is a run."""
        return self.kind == "run"


def builtins() -> list[Entry]:
    """Return the scenarios that come with flmarket, the one to start with first."""
    names = sorted(builtin_names(), key=lambda name: (name != "quickstart", name))
    return [Entry("built-in", name, builtin_path(name)) for name in names]


def own_files(folder: Path) -> list[Entry]:
    """Return the scenario files in a folder; other TOML files are left out."""
    found = []
    for path in sorted(folder.glob("*.toml")):
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeError):
            continue
        if "[[services]]" in text:
            found.append(Entry("file", path.name, path))
    return found


def recent_runs(out: Path) -> list[Entry]:
    """Return the run directories below a folder, the newest first."""
    found = sorted(out.glob(f"*/*/seed-*/{SCENARIO}"), key=_mtime, reverse=True)
    return [
        Entry("run", " · ".join(path.parent.relative_to(out).parts), path.parent) for path in islice(found, MOST_RUNS)
    ]


def _mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def find_run(out: Path, text: str, name: str, policy: str, seed: int) -> RunDirectory | None:
    """Return the directory of the run of a resolved scenario, if there is one already."""
    for path in out.glob(f"{name}-*/{policy}/seed-{seed:04d}/{SCENARIO}"):
        try:
            if path.read_text(encoding="utf-8") == text:
                return RunDirectory(path.parent)
        except (OSError, UnicodeError):
            continue
    return None


def preview(entry: Entry) -> RenderableType:
    """Return an entry in words and numbers."""
    try:
        return _run_preview(entry) if entry.is_run else _scenario_preview(load(entry.path))
    except ScenarioError as error:
        problems = Text("\n".join(map(str, error.problems)), "red")
        return Group(Text(f"{entry.name} can't be used as it is:", "bold"), Text(), problems)
    except (OSError, UnicodeError, StoreError, LogError) as error:
        return Text(f"{entry.path}: can't be read: {error}", "red")


def _scenario_preview(scenario: Scenario) -> RenderableType:
    parts: list[RenderableType] = [Text(scenario.name, "bold")]
    if scenario.description:
        parts.append(Text(scenario.description, "italic"))
    parts += [Text(), *(Text(line) for line in story(scenario)), Text(), services_table(scenario)]
    return Group(*parts)


def story(scenario: Scenario) -> Iterator[str]:
    """Yield a scenario in sentences."""
    clients, services = scenario.clients, scenario.services
    cores = "1 core" if clients.cores == 1 else f"{clients.cores} cores"
    yield (
        f"{len(services)} service{'s' * (len(services) > 1)} compete{'s' * (len(services) == 1)} for {clients.count} "
        f"clients with {cores} each, over at most {scenario.rounds} rounds."
    )
    low, high = min(clients.data_size), max(clients.data_size)
    cost = clients.cost
    cheap = max(0.0, cost.per_sample * low - max(cost.per_emd * emd for emd in clients.emd))
    dear = cost.per_sample * high - min(cost.per_emd * emd for emd in clients.emd)
    mean = cost.per_sample * sum(clients.data_size) / len(clients.data_size)
    mean -= cost.per_emd * sum(clients.emd) / len(clients.emd)
    budgets = sorted({service.budget for service in services})
    yield (
        f"In each round a client has {low} to {high} images for each service, with EMD {min(clients.emd):g} to "
        f"{max(clients.emd):g}, and asks {cheap:.2f} to {dear:.2f} for training on them."
    )
    if mean > 0:
        counts = " to ".join(f"{budget / mean:.0f}" for budget in dict.fromkeys((budgets[0], budgets[-1])))
        yield f"A budget buys about {counts} clients a round."
    yield f"Data quality indicator: {scenario.dqi} parameters of eq. (6)."
    if scenario.interventions:
        changes = ", ".join(f"{c.key} = {c.value} in round {c.round}" for c in scenario.interventions)
        yield f"Shocks: {changes}."
    if scenario.sweep:
        yield f"A sweep of {len(points(scenario))} scenarios over {', '.join(scenario.sweep)}."


def services_table(scenario: Scenario) -> Table:
    """Return the services as a table."""
    table = Table("#", "service", "data set", "budget", "target %", "policy", box=None, pad_edge=False)
    for m, service in enumerate(scenario.services):
        table.add_row(
            sign(m),
            service.name,
            service.dataset,
            f"{service.budget:g}",
            percent(service.target_accuracy),
            service.policy,
        )
    return table


def _run_preview(entry: Entry) -> RenderableType:
    run = RunDirectory(entry.path)
    scenario = parse((entry.path / SCENARIO).read_text(encoding="utf-8"), str(entry.path / SCENARIO))
    complete = run.state is State.COMPLETE
    number, rows = last_services(entry.path)
    state = "complete" if complete else ("failed" if (entry.path / META).exists() else "not finished")
    words = f"{state}, {number} of {scenario.rounds} rounds, policy {entry.path.parent.name}, {entry.path.name}"
    table = Table("#", "service", "accuracy %", "target %", "status", "spent last", box=None, pad_edge=False)
    for m, row in enumerate(rows):
        table.add_row(
            sign(m), row.service, percent(row.accuracy), percent(row.target_accuracy), row.status.value,
            f"{row.spent / MICRO:.2f}",
        )  # fmt: skip
    return Group(
        Text(scenario.name, "bold"), Text(words, "italic"), Text(str(entry.path), "dim"), Text(), table, Text(),
        *(Text(line) for line in story(scenario)),
    )  # fmt: skip
