"""Nash averaging: what it must do, by construction."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flmarket.benchmark.league.ratings import cycle, equilibrium, rate, support

ROCK_PAPER_SCISSORS = np.array([[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]])


def copied(game: np.ndarray, which: int) -> np.ndarray:
    """The game with a copy of one policy at the end."""
    index = [*range(len(game)), which]
    return game[np.ix_(index, index)]


def over_seeds(game: np.ndarray, seeds: int = 6, noise: float = 0.0) -> np.ndarray:
    """Payoffs [seed, n, n] whose mean difference is the game."""
    drawn = np.random.default_rng(0).normal(size=(seeds, *game.shape))
    return game / 2 + noise * drawn


def test_rock_paper_scissors_has_equal_parts_and_equal_ratings() -> None:
    assert equilibrium(ROCK_PAPER_SCISSORS) == pytest.approx([1 / 3] * 3)
    found = rate(["rock", "paper", "scissors"], over_seeds(ROCK_PAPER_SCISSORS))
    assert [it.rating.estimate for it in found] == pytest.approx([0.0] * 3, abs=1e-8)
    assert [it.stays for it in found] == [1.0] * 3


@pytest.mark.slow
def test_a_copy_of_a_policy_changes_no_rating_and_shares_its_part() -> None:
    game = np.array([[0.0, -1.0, 1.0, 3.0], [1.0, 0.0, -1.0, 1.0], [-1.0, 1.0, 0.0, 2.0], [-3.0, -1.0, -2.0, 0.0]])
    names = ["rock", "paper", "scissors", "fool"]
    before = {it.policy: it for it in rate(names, over_seeds(game))}
    assert before["fool"].share == 0
    assert before["fool"].rating.estimate == pytest.approx(-2)  # the mean against the other three, not against a copy
    for which, name in enumerate(names):
        after = {it.policy: it for it in rate([*names, "copy"], over_seeds(copied(copied(game, which), which)[:5, :5]))}
        for each in names:
            assert after[each].rating.estimate == pytest.approx(before[each].rating.estimate, abs=1e-7)
        assert after["copy"].rating.estimate == pytest.approx(before[name].rating.estimate, abs=1e-7)
        assert after["copy"].share + after[name].share == pytest.approx(before[name].share, abs=1e-7)
        assert after["copy"].share == pytest.approx(after[name].share, abs=1e-7)


def test_how_badly_a_rival_that_does_not_matter_is_beaten_changes_no_rating() -> None:
    """The mean would put the policy first that beats the fool by more."""
    game = np.array([[0.0, 1.0, 1.0], [-1.0, 0.0, 50.0], [-1.0, -50.0, 0.0]])
    assert game.mean(axis=1).argmax() == 1
    found = rate(["best", "bully", "fool"], over_seeds(game))
    assert found[0].policy == "best"
    assert {it.policy: it.rating.estimate for it in found} == pytest.approx({"best": 0.0, "bully": -1.0, "fool": -1.0})


games = st.integers(1, 7).flatmap(
    lambda n: st.lists(st.lists(st.integers(-4, 4), min_size=n, max_size=n), min_size=n, max_size=n)
)


@given(games)
def test_nobody_gains_against_an_equilibrium_and_all_who_can_have_a_part(drawn: list[list[int]]) -> None:
    half = np.array(drawn, dtype=float)
    game = half - half.T
    share = equilibrium(game)
    assert share.sum() == pytest.approx(1)
    assert (share >= 0).all()
    assert (game @ share).max() <= 1e-4
    assert ((share > 1e-9) <= support(game)).all()
    assert (np.abs((game @ share)[support(game)]) <= 1e-4).all()


def test_policies_that_are_all_alike_have_equal_parts() -> None:
    assert equilibrium(np.zeros((4, 4))) == pytest.approx([0.25] * 4)


def test_the_interval_is_that_of_the_mean_over_seeds_and_one_seed_has_none() -> None:
    game = np.array([[0.0, 2.0], [-2.0, 0.0]])
    best, other = rate(["best", "other"], over_seeds(game, noise=0.1))
    assert (best.share, best.rating.estimate, best.rating.low, best.rating.high) == (1, 0, 0, 0)
    assert other.rating.low < -1.5 > other.rating.estimate > -2.5
    assert other.rating.low < other.rating.estimate < other.rating.high < 0
    assert rate(["best", "other"], over_seeds(game, 1))[1].rating.known is False


def test_a_circle_is_found_where_all_three_victories_are_certain() -> None:
    names = ["rock", "paper", "scissors"]
    policies, narrowest = cycle(names, over_seeds(ROCK_PAPER_SCISSORS, noise=0.01)) or (None, None)
    assert policies == ("rock", "scissors", "paper")
    assert narrowest is not None
    assert narrowest.low > 0.9
    assert cycle(names, over_seeds(ROCK_PAPER_SCISSORS, noise=3.0)) is None
    assert cycle(names, over_seeds(np.array([[0.0, 1, 2], [-1, 0, 1], [-2, -1, 0]]))) is None
