"""The numbers in the tables of several runs are those of their files: batch, league, compare, and home's list."""

import re
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from random import Random

import numpy as np
import pytest
from scipy.stats import t as student
from textual.pilot import Pilot

import flmarket
from audit.runs import MICRO, Run
from scenarios.logs.run_state import RunState
from support.numbers import Checked, Exact, cells_of, lines_of, words_of
from support.screens import screen_of, until
from support.tiers import slow
from tui.app import MarketApp
from tui.screens.batch import BatchScreen
from tui.screens.compare import CompareScreen
from tui.widgets.batch_tables import BatchTable, LeagueChart
from tui.widgets.comparison import DELTA, CompareTable
from tui.widgets.entry_list import EntryList

SIZES = [(200, 60), *slow(*(((columns, rows),) for columns, rows in ((80, 24), (120, 40), (160, 48))))]
POLICIES = ("hqfa", "random")


def interval(values: Sequence[float], *limits: float) -> list[float]:
    """Return the mean and the ends of its 95 % interval by Student's t, within limits; the mean alone of one or two."""
    mean, n = float(np.mean(values)), len(values)
    if n < 3:
        return [mean]
    half = float(student.ppf(0.975, n - 1)) * float(np.std(values, ddof=1)) / n**0.5
    ends = [mean - half, mean + half]
    return [mean, *(np.clip(ends, *limits) if limits else ends)]


def last(run: Run) -> dict[str, float]:
    """Return the accuracy of each service after the last round, %."""
    return dict(zip(run.services, 100 * run.rounds.test_accuracy[-len(run.services) :], strict=True))


def auc(run: Run) -> dict[str, float]:
    """Return the mean accuracy of each service over all rounds of the scenario, %: one that left keeps its last."""
    played = 100 * run.rounds.test_accuracy.to_numpy().reshape(-1, len(run.services))
    held = np.concatenate([played, np.repeat(played[-1:], run.scenario["rounds"] - len(played), axis=0)])
    return dict(zip(run.services, held.mean(axis=0), strict=True))


def met(run: Run) -> int:
    return len(run.rounds.service[run.rounds.status == "reached"].unique())


def measured(run: Run, service: str) -> dict[str, float]:
    """Return what Compare shows of a service in a run."""
    own = run.rounds[run.rounds.service == service]
    reached = own["round"][own.status == "reached"]
    return {
        "AUC": auc(run)[service],
        "final accuracy": last(run)[service],
        "rounds to target": float(reached.iloc[0] if len(reached) else own["round"].iloc[-1]),
        "spent": own.spent.sum() / MICRO,
        "served": float(own.served.sum()),
        "refused": float(own.refused.sum()),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of two policies, three drawn seeds each: in some a service meets its target, in others it does not."""
    out = tmp_path_factory.mktemp("tables")
    market = flmarket.load(
        "paper", {"training.backend": "surrogate", "rounds": 30, "services.mnist.target_accuracy": 0.9}
    )
    seeds = Random(57).sample(range(1000), 3)  # noqa: S311 - which runs
    flmarket.run(market, POLICIES, seeds, out=out / "runs", workers=0, progress=False)
    return out


@pytest.fixture
def runs(folder: Path) -> dict[tuple[str, int], Run]:
    found = [Run(path.parent) for path in folder.glob("runs/*/*/*/meta.json")]
    return {(run.path.parent.name, run.meta["seed"]): run for run in found}


@pytest.fixture
def app(folder: Path) -> MarketApp:
    return MarketApp(out=folder / "runs", folder=folder)


@pytest.mark.parametrize("size", SIZES)
async def test_home_lists_what_the_files_say(
    app: MarketApp, runs: dict[tuple[str, int], Run], size: tuple[int, int]
) -> None:
    checked = Checked()
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: any(entry.is_run for entry in app.home.entries))
        await pilot.press("ctrl+end", "end")
        for line in lines_of(app.home.query_one(EntryList)):
            if found := re.search(r"(hqfa|random) +seed (\d+) .*?(\d.*target\S*)", line):
                run = runs[found[1], int(found[2])]
                checked.numbers("home", found[3].rpartition("ago")[2], met(run), len(run.services))
    assert checked.total >= 2 * (size[0] > 80)


@pytest.mark.parametrize("size", SIZES)
async def test_batch_and_its_league_show_what_the_files_say(
    app: MarketApp, runs: dict[tuple[str, int], Run], size: tuple[int, int]
) -> None:
    checked = Checked()
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.home.entries)
        await pilot.press("b")
        screen = await screen_of(pilot, BatchScreen)
        table = screen.query_one(BatchTable)
        await until(pilot, lambda: table.count == len(runs))
        for _, cells in cells_of(table):
            run = runs[cells["policy"].strip(), int(cells["seed"])]
            _compare_row(checked, cells, [run])
        await pilot.press("g")
        await until(pilot, lambda: table.count == len(POLICIES))
        for _, cells in cells_of(table):
            group = [run for (policy, _), run in runs.items() if policy == cells["policy"].strip()]
            checked.numbers("batch", cells["seed"], len(group))
            _compare_row(checked, cells, group)
        for line in lines_of(screen.query_one(LeagueChart)):
            if (policy := line.strip("│ ").split(" ")[0]) in POLICIES:
                group = [run for (name, _), run in runs.items() if name == policy]
                mean, low, high = interval([float(np.mean([*auc(run).values()])) for run in group], 0, 100)
                ends: list[float] = [low, high] if "[" in line else []
                words = line.partition(policy)[2].rstrip("│ ")
                checked.numbers("league", words, len(group), len(group), mean, *ends)
    assert checked.total > 30


def _compare_row(checked: Checked, cells: dict[str, str], group: Sequence[Run]) -> None:
    rounds = sum(run.meta["rounds"] for run in group)
    at_most = rounds if len(group) > 1 else group[0].scenario["rounds"]
    wanted: dict[str, list[Exact]] = {
        "round": [rounds, at_most],
        "accuracy": [float(np.mean([*last(run).values()])) for run in group][:1]
        if len(group) == 1
        else [float(np.mean([np.mean([*last(run).values()]) for run in group]))],
        "auc": [float(np.mean([np.mean([*auc(run).values()]) for run in group]))],
        "met": [float(np.mean([met(run) for run in group])), len(group[0].services)],
    }
    for key in cells.keys() & wanted.keys():
        checked.numbers("batch", cells[key].replace("/", " "), *wanted[key])


@pytest.mark.parametrize("size", SIZES)
async def test_compare_shows_means_intervals_and_differences_of_the_files(
    app: MarketApp, runs: dict[tuple[str, int], Run], size: tuple[int, int]
) -> None:
    checked = Checked()
    async with app.run_test(size=size) as pilot:
        order = sorted(runs)
        sessions = [app.runs.open(runs[key].path) for key in order]
        await until(pilot, lambda: all(session.state is RunState.COMPLETE for session in sessions))
        app.push_screen(CompareScreen(sessions, app))
        screen = await screen_of(pilot, CompareScreen)
        table = screen.query_one(CompareTable)
        await until(pilot, lambda: table.count == 3 * len(POLICIES))
        groups = {policy: [runs[key] for key in order if key[0] == policy] for policy in POLICIES}
        await _compare_table(pilot, screen, checked, groups)
        await pilot.press("s")
        await until(pilot, lambda: table.count == 3 * len(runs))
        await _compare_table(pilot, screen, checked, {str(key): [runs[key]] for key in order})
    assert checked.total > 50


async def _compare_table(
    pilot: Pilot[None], screen: CompareScreen, checked: Checked, groups: dict[str, list[Run]]
) -> None:
    """Check the rows of a table of groups, of which the first is the baseline, and the finding about each service."""
    table, services = screen.query_one(CompareTable), screen.services
    measures = {
        (service, name): [measured(run, service) for run in group]
        for service, (name, group) in product(services, groups.items())
    }
    baseline = next(iter(groups))
    for place, cells in cells_of(table):
        row = table._shown[place]
        service, name = row.service, [*groups][row.group]
        own, base = measures[service, name], measures[service, baseline]
        for measure in own[0]:
            values = [one[measure] for one in own]
            wanted: list[float] = interval(values, 0, 100 if measure in {"AUC", "final accuracy"} else float("inf"))
            if measure == "rounds to target":
                reached = sum(
                    service in set(run.rounds.service[run.rounds.status == "reached"]) for run in groups[name]
                )
                wanted = [] if not reached else wanted + [reached, len(own)] * (reached < len(own))
            if measure in cells and "[" not in cells[measure]:  # there is no room for intervals
                wanted = wanted[:1] + wanted[3:]
            if measure in cells:
                checked.numbers("compare", cells[measure], *wanted)
            if name != baseline and cells.get(DELTA + measure, "").strip():
                pairs = [one[measure] - other[measure] for one, other in zip(own, base, strict=False)]
                checked.numbers("compare", cells[DELTA + measure].replace("common seed", ""), *interval(pairs))
    if len(groups) == 2:
        for service in services:
            found = words_of(screen.query_one("#compare-status"))
            pairs = [
                one["AUC"] - other["AUC"]
                for one, other in zip(*(measures[service, name] for name in groups), strict=True)
            ]
            ends = interval(pairs)
            if "ahead" in found and ends[0] < 0:
                ends = [-ends[0], -ends[2], -ends[1]]
            elif "not clearly apart" in found:
                mean, low, high = interval([-pair for pair in pairs])
                ends = [mean, low, high]
            words = re.search(r"[+-]?[\d.]+ \[.*?\]", found)
            assert words, found
            checked.numbers("finding", words[0], *ends)
            await pilot.press("tab")
