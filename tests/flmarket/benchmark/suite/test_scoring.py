"""Scores: what is 0, what is 1, and how certain the mean is."""

import re
from dataclasses import replace

import numpy as np
import pytest

from flmarket.benchmark.suite.board import details, introduction, leaderboard, page, tables
from flmarket.benchmark.suite.scoring import standings
from flmarket.benchmark.suite.submission import Submission, entry, play
from flmarket.core.errors import InputError
from learning.statistics.intervals import paired_interval
from scenarios.suite.frozen import RESIDENT, VISITOR, Suite


def reference(policy: str, suite: Suite) -> Submission:
    """Return a submission from the frozen references, without playing."""
    results = {cell: suite.references[cell][policy] for cell in suite.cells()}
    return entry(policy, suite).with_results(results)


def shifted(submission: Submission, by: float, agent: str) -> Submission:
    """Return what another training of a method might have reached."""
    results = {cell: auc + by * cell.seed for cell, auc in submission.results.items()}
    return replace(submission, results=results, agent=agent, method="mine")


def test_random_is_0_and_the_privileged_visitor_1(small: Suite) -> None:
    [random] = standings([play("random", small)], small)
    score = random.score()
    assert score is not None
    assert (score.estimate, score.low, score.high) == (0, 0, 0)
    [oracle] = standings([reference("oracle", small)], small)
    visiting = oracle.score(VISITOR)
    assert visiting is not None
    assert visiting.estimate == pytest.approx(1)
    assert all(result.reference_name == "oracle" for result in oracle.chosen(VISITOR))


def test_the_reference_of_residents_is_the_better_privileged_policy(small: Suite) -> None:
    both = standings([reference("oracle", small), reference("d-first", small)], small)
    for one, other in zip(both[0].chosen(RESIDENT), both[1].chosen(RESIDENT), strict=True):
        best = max((it.auc.mean(), it.scores.mean()) for it in (one, other))
        assert best[1] == pytest.approx(1)
        assert one.reference.mean() == pytest.approx(best[0])


def test_a_score_is_the_ratio_of_means_and_differences_are_of_auc(small: Suite) -> None:
    [hqfa] = standings([reference("hqfa", small)], small)
    pair = hqfa.chosen(RESIDENT)[0]
    cells = small.cells((RESIDENT,), ("pair",))
    mean = {name: np.mean([small.references[cell][name] for cell in cells]) for name in small.references[cells[0]]}
    top = max(mean["oracle"], mean["d-first"])
    assert pair.scores.mean() == pytest.approx((mean["hqfa"] - mean["random"]) / (top - mean["random"]))
    assert pair.differences.mean() == pytest.approx(mean["hqfa"] - max(mean["hqfa"], mean["lcfa"]))


def test_trainings_and_market_seeds_are_crossed(small: Suite) -> None:
    base = reference("lcfa", small)
    trainings = [shifted(base, by, agent) for by, agent in ((0.0, "a"), (0.002, "b"), (-0.001, "c"))]
    [mine] = standings(trainings, small)
    assert mine.trainings == 3
    stacked = np.mean([result.scores for result in mine.results], axis=0)
    assert stacked.shape == (3, 3)
    assert mine.score() == paired_interval(stacked, np.zeros((3, 3)))
    assert "worst training" in details(mine).rows[0][-1]


def test_submissions_of_one_method_are_of_different_agents(small: Suite) -> None:
    base = reference("lcfa", small)
    with pytest.raises(InputError, match="method 'lcfa' has 2 submissions that are not of different agents"):
        standings([base, base], small)


def test_the_leaderboard_is_in_the_order_of_scores_and_partial_submissions_come_last(small: Suite) -> None:
    partly = reference("d-first", small)
    partly = replace(partly, results={cell: auc for cell, auc in partly.results.items() if cell.market == "pair"})
    shown = standings([partly, reference("random", small), reference("oracle", small)], small)
    assert [row[0] for row in leaderboard(shown).rows] == ["oracle*", "random", "d-first*†"]
    text = " ".join(introduction(shown, small))
    assert "Marked †: not all of the suite is played, so scores are of other markets or seeds." in text
    assert "Of its 3 results, one for each market and mode with all seeds, d-first lacks 1." in text
    assert "Policies marked * see what the paper hides" in text
    assert [it.title for it in tables(shown)] == ["Leaderboard", "Scores as residents", "Scores as visitors"]


def test_methods_are_compared_in_the_part_that_is_asked_for(small: Suite) -> None:
    oracle, partly = reference("oracle", small), reference("d-first", small)
    cells = small.cells((RESIDENT,), ("pair",), small.seeds[:2])
    partly = replace(partly, results={cell: partly.results[cell] for cell in cells})
    shown = standings([oracle, partly], small, cells)
    assert [(it.wanted, it.missing) for it in shown] == [(1, 0)] * 2
    assert {result.seeds for it in shown for result in it.results} == {small.seeds[:2]}
    lacking = standings([oracle, partly], small, small.cells((RESIDENT,), ("pair",)))
    assert [(it.method, it.wanted, it.missing) for it in lacking] == [("oracle", 1, 0), ("d-first", 1, 1)]
    text = " ".join(introduction(shown, small, "mode resident"))
    assert "Only a part of the suite is compared: mode resident. All of this part is played: 1 of 1 results" in text


def test_a_page_of_the_whole_suite_says_so_and_shows_no_marks_of_markdown_and_no_negative_zero(small: Suite) -> None:
    nearly = shifted(reference("random", small), -1e-12, "a")
    made = page(standings([nearly], small), small, "flmarket suite --leaderboard submissions")
    assert "All of the suite is played: 3 of 3 results" in made
    assert "A score of 0 is random, 1 the privileged reference" in made
    assert "`" not in made
    assert not re.search(r"-0\.0+\b", made)


def test_a_page_shows_foreign_names_as_text(small: Suite) -> None:
    evil = replace(reference("random", small), method="<script>alert(1)</script>")
    made = page(standings([evil], small), small, "flmarket suite --leaderboard submissions")
    assert "<script" not in made
    assert "&lt;script&gt;" in made
    assert made.count("<table>") == 5  # three of the leaderboard, one for the policy, one for the markets
