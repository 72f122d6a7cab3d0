"""notebook/leaderboard.md shows what the kept submissions to the suite say, and these can be played again."""

import re
from dataclasses import replace
from pathlib import Path
from shutil import copytree, ignore_patterns

import further_seeds as further
import numpy as np
import pytest
import suite_pairs as pairs

from flmarket.benchmark.suite.board import leaderboard
from flmarket.benchmark.suite.scoring import standings
from flmarket.benchmark.suite.submission import play, read_all
from learning.policy import agent_digest
from scenarios.suite.frozen import Suite, read
from support.pages import commands
from support.shell import flmarket

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "research/results/suite"
PAGE = "research/notebook/leaderboard.md"
NOTEBOOK = ROOT / "research/notebook"


@pytest.fixture(scope="module")
def suite() -> Suite:
    return read()


def between(page: str, name: str) -> str:
    found = re.search(rf"<!-- {name}: begin -->\n\n(.*)\n\n<!-- {name}: end -->", (ROOT / page).read_text(), re.S)
    assert found is not None
    return found[1]


COMMANDS = [words[1:] for words in commands((ROOT / PAGE).read_text()) if "--fresh" not in words]
"""Those of the page that play what the kept submissions lack, without the word flmarket."""


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[-1])
def test_each_command_of_the_page_continues_the_kept_submissions(words: list[str], tmp_path: Path) -> None:
    """If this fails because flmarket has another version: play them again, with --fresh."""
    kept = copytree(KEPT, tmp_path / "research/results/suite", ignore=ignore_patterns("further"))
    copytree(ROOT / "examples", tmp_path / "examples")
    before = {path: path.read_bytes() for path in kept.glob("*.json")}
    done = flmarket(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {path: path.read_bytes() for path in kept.glob("*.json")} == before
    if "--leaderboard" in words:  # if this fails: put what it prints between the marks
        assert between(PAGE, "leaderboard") == done.stdout.rstrip("\n")


def test_more_than_the_references_is_what_the_kept_submissions_say(suite: Suite) -> None:
    """If this fails: put what `python research/suite_pairs.py research/results/suite` prints between the marks."""
    assert between(PAGE, "pairs") == pairs.table(KEPT, suite).markdown()
    found = {it.method: it for it in standings(read_all([KEPT], suite), suite)}
    best = pairs.best_of([found["mirror"], found["bwk"]])
    for result in found["mahdrl"].results:
        [mirror] = [it.auc[0] for it in found["mirror"].results if (it.market, it.mode) == (result.market, result.mode)]
        assert best(result).mean() >= mirror.mean()


def intervals(text: str) -> list[tuple[str, ...]]:
    """Return all numbers with an interval."""
    number = r"([+-]?\d*\.\d+)"
    return re.findall(rf"{number}\s+\[{number},\s+{number}\]", text)


@pytest.fixture(scope="module")
def told(suite: Suite) -> set[tuple[float, ...]]:
    """The intervals in all tables of the notebook, and those of the shipped agent alone in either set of seeds."""
    tables = [line for page in NOTEBOOK.glob("*.md") for line in page.read_text().splitlines() if "| " in line]
    shipped = [agent_digest("mahdrl", None), None]
    for seeds, folder in ((suite, KEPT), (further.further(suite), KEPT / "further")):
        played = [it for it in read_all([folder], seeds) if it.agent in shipped]
        references = {it.policy: it.results for it in played if it.policy in further.references(suite)}
        measured = {cell: {name: aucs[cell] for name, aucs in references.items()} for cell in seeds.cells()}
        found = standings(played, seeds if seeds is suite else replace(seeds, references=measured))
        tables += [cell for row in leaderboard(found).rows for cell in row]
    return {tuple(map(float, it)) for it in intervals("\n".join(tables))}


@pytest.mark.parametrize(
    "page", ["research/notebook/leaderboard.md", "research/notebook/any-market.md", "docs/agents.md"]
)
def test_every_interval_in_words_is_one_of_a_table(page: str, told: set[tuple[float, ...]]) -> None:
    text, _, _ = (ROOT / page).read_text().partition("## Model card")
    for found in intervals(text):
        digits = len(found[0].rpartition(".")[2])
        estimate, low, high = map(float, found)
        both = (estimate, low, high), (-estimate, -high, -low)  # who is ahead of whom may be said either way
        assert any(tuple(round(it, digits) for it in one) in both for one in told), found


def test_the_words_name_the_markets_in_which_it_is_behind(suite: Suite) -> None:
    found = {it.method: it for it in standings(read_all([KEPT], suite), suite)}
    rules = [it for it in found.values() if not it.privileged and not it.method.startswith("mahdrl")]
    page, words = (" ".join((ROOT / it).read_text().split()) for it in (PAGE, "research/notebook/any-market.md"))
    trainings = [
        f"{score:.3f}" for score in np.mean([it.scores.mean(axis=1) for it in found["mahdrl"].results], axis=0)
    ]
    assert f"hardly differ: {', '.join(trainings[:-1])} and {trainings[-1]}." in page
    for mode, of in (("resident", "{} of 30 markets as a resident"), ("visitor", "{} of 28 as a visitor")):
        gaps = {it.market.name: it.differences.mean() for it in found["mahdrl"].chosen(mode)}
        behind = sorted((gap, name) for name, gap in gaps.items() if gap < -further.WITHIN)
        named = ", ".join(f"`{name}` {short(gap)}" for gap, name in behind)
        assert f"{of.format(len(behind))} ({named})" in words
    best = pairs.best_of(rules)
    gaps = {it.market.name: (it.auc - best(it)).mean() for it in found["mahdrl"].chosen("visitor")}
    assert f"behind `mirror` in `twelve` ({short(gaps['twelve'])}) and `run-long` ({short(gaps['run-long'])})" in words
    assert f"its worst market is `{min(gaps, key=gaps.get)}` ({short(min(gaps.values()))} to `mirror`)" in page


def short(value: float) -> str:
    return f"{value:.4f}".replace("0.", ".", 1)


def test_kept_submissions_are_complete(suite: Suite) -> None:
    found = standings(read_all([KEPT], suite), suite)
    assert {it.method for it in found} >= {"random", "hqfa", "dearest", "pacing", "outbid", "oracle", "d-first"}
    assert [it.method for it in found if it.missing] == []


def test_the_tables_of_further_seeds_are_those_of_the_kept_runs(suite: Suite) -> None:
    """If this fails: python research/further_seeds.py --out research/results/suite/further --print"""
    with_others = further.further(suite)
    assert between(PAGE, "further") == further.tables(with_others, KEPT / "further")
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
