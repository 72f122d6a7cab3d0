"""The suite's markets with market seeds that the suite does not have."""

from dataclasses import replace
from pathlib import Path

import further_seeds as further
import pytest

from flmarket.benchmark.suite.submission import play, read, read_all
from flmarket.core.errors import InputError
from scenarios.suite.frozen import Suite
from scenarios.suite.frozen import read as frozen

SEEDS = (11, 12, 13)
PAIR = "starved"
SMALL = replace(frozen(), markets={name: frozen().market(name) for name in ("alone", PAIR)})
"""Two markets of the suite that play in no time."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of the references and another policy with other seeds."""
    found = tmp_path_factory.mktemp("further")
    suite = further.further(SMALL, SEEDS)
    for policy in (*further.references(suite), "ucb"):
        further.fill(policy, policy, suite, found, jobs=1)
    return found


@pytest.fixture
def suite() -> Suite:
    return further.further(SMALL, SEEDS)


def test_policies_are_measured_by_references_of_the_same_seeds(suite: Suite, folder: Path) -> None:
    found = {it.method: it for it in further.standings_of(suite, folder)}
    assert set(found) == {*further.references(SMALL), "ucb"}
    assert found["random"].score().estimate == 0
    [pair] = (it for it in found["ucb"].chosen("resident") if it.market.name == PAIR)
    assert pair.seeds == SEEDS
    cells = suite.cells(("resident",), (PAIR,))
    for name, aucs in (("ucb", pair.auc[0]), ("random", pair.floor), (pair.rival_name, pair.rival)):
        own = play(name, suite, cells=cells).results
        assert aucs.tolist() == [own[cell] for cell in cells]
    with pytest.raises(InputError, match="is not a submission to version 1 of the suite"):
        read_all([folder], SMALL)  # they are not taken for submissions to the suite itself


def test_what_the_folder_has_is_not_played_again(suite: Suite, folder: Path, tmp_path: Path) -> None:
    whole = read(folder / "ucb.json", suite)
    first = suite.cells()[0]
    replace(whole, results={first: 0.5}).write(tmp_path / "ucb.json", suite)
    further.fill("ucb", "ucb", suite, tmp_path, jobs=1)
    assert read(tmp_path / "ucb.json", suite).results == {**whole.results, first: 0.5}


def test_it_says_where_trainings_fall_short(suite: Suite, folder: Path) -> None:
    references = [it for it in read_all([folder], suite) if it.policy != "ucb"]
    played = {it.policy: it.results for it in references}
    best = {(it.market.name, it.mode): it.rival_name for it in further.standings_of(suite, folder)[0].results}
    rival = {cell: played[best[cell.market, cell.mode]][cell] for cell in suite.cells()}

    def table(first: float, second: float) -> list[list[str]]:
        ucb = read(folder / "ucb.json", suite)
        trainings = [
            replace(ucb, method="mahdrl", agent=letter * 64, results={cell: auc + more for cell, auc in rival.items()})
            for letter, more in (("a", first), ("b", second))
        ]
        measured = {cell: {policy: results[cell] for policy, results in played.items()} for cell in suite.cells()}
        [found] = further.standings(trainings, replace(suite, references=measured))
        shown: list[list[str]] = further.behind(found).rows
        return shown

    assert table(0.001, -0.0035)[0][:2] == ["mean of all markets", "resident"]  # neither bound is missed
    assert table(0.001, -0.0046)[0] == ["alone", "resident", "-0.0018", "+0.0010", "-0.0046"]  # one training
    assert table(-0.003, -0.003)[0] == ["alone", "resident", "-0.0030", "-0.0030", "-0.0030"]  # their mean
    assert table(-0.003, -0.003)[2:] == [
        ["mean of all markets", "resident", "-0.0030", "-0.0030", "-0.0030"],
        ["mean of all markets", "visitor", "-0.0030", "-0.0030", "-0.0030"],
    ]
