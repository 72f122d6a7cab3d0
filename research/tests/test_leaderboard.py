"""notebook/leaderboard.md shows what the kept submissions to the suite say, and these can be played again."""

import re
from pathlib import Path

import further_seeds as further
import pytest
import suite_pairs as pairs

from flmarket.analysis.results.markdown import markdown_table
from flmarket.benchmark.suite.playing import play
from flmarket.benchmark.suite.scoring import standings
from flmarket.benchmark.suite.submission import read_all
from learning.policy import agent_digest
from scenarios.suite.frozen import Suite, read
from support.shell import flmarket

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "research/results/suite"


@pytest.fixture(scope="module")
def suite() -> Suite:
    return read()


def between(page: str, name: str) -> str:
    found = re.search(rf"<!-- {name}: begin -->\n\n(.*)\n\n<!-- {name}: end -->", (ROOT / page).read_text(), re.S)
    assert found is not None
    return found[1]


def test_the_leaderboard_is_that_of_the_kept_submissions() -> None:
    """If this fails: flmarket suite --leaderboard research/results/suite, and put what it prints between the marks."""
    done = flmarket("suite", "--leaderboard", str(KEPT))
    assert done.returncode == 0, done.stderr
    assert between("research/notebook/leaderboard.md", "leaderboard") == done.stdout.rstrip("\n")


def test_more_than_the_references_is_what_the_kept_submissions_say(suite: Suite) -> None:
    """If this fails: put what `python research/suite_pairs.py research/results/suite` prints between the marks."""
    assert between("research/notebook/leaderboard.md", "pairs") == markdown_table(pairs.table(KEPT, suite))
    found = {it.method: it for it in standings(read_all([KEPT], suite), suite)}
    best = pairs.best_of([found["mirror"], found["bwk"]])
    for result in found["mahdrl"].results:
        [mirror] = [it.auc[0] for it in found["mirror"].results if (it.market, it.mode) == (result.market, result.mode)]
        assert best(result).mean() >= mirror.mean()


def test_kept_submissions_are_complete(suite: Suite) -> None:
    found = standings(read_all([KEPT], suite), suite)
    assert {it.method for it in found} >= {"random", "hqfa", "dearest", "pacing", "outbid", "oracle", "d-first"}
    assert [it.method for it in found if it.missing] == []


def test_the_tables_of_further_seeds_are_those_of_the_kept_runs(suite: Suite) -> None:
    """If this fails: python research/further_seeds.py --out research/results/suite/further --print"""
    with_others = further.further(suite)
    assert between("research/notebook/leaderboard.md", "further") == further.tables(with_others, KEPT / "further")
    found = further.standings_of(with_others, KEPT / "further")
    assert [it.method for it in found if it.missing] == []
    assert {it.method: it.trainings for it in found}["mahdrl"] == 5


@pytest.mark.parametrize("policy", ["hqfa", "oracle", "mahdrl:research/results/suite/agents/mahdrl-seed4.safetensors"])
def test_a_run_with_a_further_seed_can_be_played_again(suite: Suite, policy: str) -> None:
    with_others = further.further(suite)
    name, _, agent = policy.partition(":")
    path = KEPT / "further" / (f"{name}@{Path(agent).stem}.json" if agent else f"{name}.json")
    [kept] = read_all([path], with_others)
    cell = with_others.cells(("visitor",), ("starved",), with_others.seeds[-1:])[0]
    entrant = f"{name}:{ROOT / agent}" if agent else name
    assert play(entrant, with_others, cells=[cell]).results[cell] == kept.results[cell]


AGENTS = {agent_digest("mahdrl", str(file)): file for file in (KEPT / "agents").glob("*.safetensors")}
"""Our trainings, which are kept with their submissions, by their digests."""

UNTOLD = sorted(KEPT.glob("mahdrl-untold@*.json"))
"""Submissions of a plug-in."""


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(set(KEPT.glob("*.json")) - set(UNTOLD)), ids=lambda path: path.stem)
def test_a_run_of_each_submission_can_be_played_again(suite: Suite, path: Path) -> None:
    [kept] = read_all([path], suite)
    policy = f"mahdrl:{AGENTS[kept.agent]}" if kept.policy == "mahdrl" else kept.policy
    cell = suite.cells(("visitor",), ("starved",), suite.seeds[:1])[0]
    assert play(policy, suite, cells=[cell]).results[cell] == kept.results[cell]


@pytest.mark.slow
@pytest.mark.parametrize("path", UNTOLD, ids=lambda path: path.stem)
def test_runs_of_agents_that_are_told_no_curve_can_be_played_again(suite: Suite, path: Path, tmp_path: Path) -> None:
    [kept] = read_all([path], suite)
    policy, seed = f"mahdrl-untold:{AGENTS[kept.agent]}", suite.seeds[0]
    chosen = ("--markets", "unequal", "--mode", "resident", "--seed", str(seed))
    done = flmarket(
        "suite", policy, "--plugin", str(ROOT / "examples/untold.py"), "--method", "mahdrl-untold", *chosen,
        "--out", str(tmp_path),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    [again] = read_all([tmp_path], suite)
    [cell] = suite.cells(("resident",), ("unequal",), (seed,))
    assert again.results == {cell: kept.results[cell]}
    told = read_all(sorted(KEPT.glob("mahdrl@*.json")), suite)
    assert kept.results[cell] != {it.agent: it for it in told}[kept.agent].results[cell]


def test_every_training_has_also_played_without_being_told_a_curve(suite: Suite) -> None:
    assert len({it.agent for it in read_all(UNTOLD, suite)}) == len(AGENTS)


def test_the_shipped_agent_is_one_of_the_trainings_on_the_leaderboard() -> None:
    assert agent_digest("mahdrl", None) in AGENTS
