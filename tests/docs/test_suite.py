"""docs/suite.md and docs/leaderboard.md show what the suite and the kept submissions say."""

import re
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from learning.policy import agent_digest
from scenarios.judging.render import markdown_table
from scenarios.suite.board import contents
from scenarios.suite.frozen import Suite, read
from scenarios.suite.playing import play
from scenarios.suite.scoring import standings
from scenarios.suite.submission import read_all
from support.benchmarks import benchmark
from support.shell import flmarket

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "docs/results/suite"


@pytest.fixture(scope="module")
def suite() -> Suite:
    return read()


def between(page: str, name: str) -> str:
    found = re.search(rf"<!-- {name}: begin -->\n\n(.*)\n\n<!-- {name}: end -->", (ROOT / page).read_text(), re.S)
    assert found is not None
    return found[1]


def test_the_page_lists_the_markets(suite: Suite) -> None:
    assert between("docs/suite.md", "markets") == markdown_table(contents(suite))


def test_the_page_counts_right(suite: Suite) -> None:
    runs, seeds = len(suite.cells()), len(suite.seeds)
    page = " ".join((ROOT / "docs/suite.md").read_text().split())
    assert f"{len(suite.markets)} markets of 30 to 60 rounds and {seeds} market seeds" in page
    assert f"{runs // seeds} runs for each seed, {runs} in all" in page


def test_the_leaderboard_is_that_of_the_kept_submissions() -> None:
    """If this fails: flmarket suite --leaderboard docs/results/suite, and put what it prints between the marks."""
    done = flmarket("suite", "--leaderboard", str(KEPT))
    assert done.returncode == 0, done.stderr
    assert between("docs/leaderboard.md", "leaderboard") == done.stdout.rstrip("\n")


def test_more_than_the_references_is_what_the_kept_submissions_say(suite: Suite) -> None:
    """If this fails: python benchmarks/suite_pairs.py docs/results/suite, and put what it prints between the marks."""
    pairs = benchmark("suite_pairs")
    assert between("docs/leaderboard.md", "pairs") == markdown_table(pairs.table(KEPT, suite))
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
    """If this fails: python benchmarks/further_seeds.py --out docs/results/suite/further --print"""
    further = benchmark("further_seeds")
    with_others = further.further(suite)
    assert between("docs/leaderboard.md", "further") == further.tables(with_others, KEPT / "further")
    found = further.standings_of(with_others, KEPT / "further")
    assert [it.method for it in found if it.missing] == []
    assert {it.method: it.trainings for it in found}["mahdrl"] == 5


@pytest.mark.parametrize("policy", ["hqfa", "oracle", "mahdrl:docs/results/suite/agents/mahdrl-seed4.safetensors"])
def test_a_run_with_a_further_seed_can_be_played_again(suite: Suite, policy: str) -> None:
    with_others = benchmark("further_seeds").further(suite)
    name, _, agent = policy.partition(":")
    path = KEPT / "further" / (f"{name}@{Path(agent).stem}.json" if agent else f"{name}.json")
    [kept] = read_all([path], with_others)
    cell = with_others.cells(("visitor",), ("starved",), with_others.seeds[-1:])[0]
    entrant = f"{name}:{ROOT / agent}" if agent else name
    assert play(entrant, with_others, cells=[cell]).results[cell] == kept.results[cell]


AGENTS = {agent_digest("mahdrl", str(file)): file for file in (KEPT / "agents").glob("*.safetensors")}
"""Our trainings, which are kept beside their submissions, by their digests."""

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


def test_the_submissions_of_agents_that_are_told_no_curve_are_of_the_plug_in_that_is_here(suite: Suite) -> None:
    digest = sha256((ROOT / "examples/untold.py").read_bytes()).hexdigest()
    assert len(UNTOLD) == len(AGENTS)
    assert {it.plugins["policy mahdrl-untold"]["sha256"] for it in read_all(UNTOLD, suite)} == {digest}


def test_the_shipped_agent_is_one_of_the_trainings_on_the_leaderboard() -> None:
    assert agent_digest("mahdrl", None) in AGENTS


@pytest.mark.slow
def test_the_program_of_the_page_runs_as_a_script(tmp_path: Path) -> None:
    """As it is copied: with several jobs, whose processes read it again."""
    [program] = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/suite.md").read_text(), re.M | re.S)
    (tmp_path / "mine.py").write_text(program)
    done = subprocess.run([sys.executable, "mine.py"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Interval(")
