"""Policies in the suite: what is played, by whom, and that nothing else matters."""

import numpy as np
import pytest

from des.observation import Observation, Offer
from flmarket.benchmark.suite.submission import Submission, entry, play
from flmarket.core.errors import InputError, RunError
from learning.environments.agent_policy import policy_from
from learning.environments.spaces import FlatCodec
from learning.evaluation import evaluate, everywhere, lineup
from learning.policy import POLICIES, Policy
from scenarios.build import market_factory, observed_bounds
from scenarios.suite.frozen import RESIDENT, VISITOR, Suite, SuiteRun


def test_residents_all_play_it_and_a_visitor_meets_the_files_policies(small: Suite) -> None:
    found = play("ucb", small, cells=small.cells(markets=("pair",), seeds=(2,))).results
    factory = market_factory(small.market("pair").scenario)
    entrants = {
        "resident": everywhere("ucb"),
        "alpha": lineup({"alpha": "ucb", "beta": "ucb"}),  # beta plays ucb in the file
        "beta": lineup({"alpha": "lcfa", "beta": "ucb"}),
    }
    aucs = evaluate(factory, entrants, [2]).auc()[:, 0]
    assert found == {
        SuiteRun("pair", RESIDENT, "all", 2): pytest.approx(aucs[0].mean(), abs=1e-6),
        SuiteRun("pair", VISITOR, "alpha", 2): pytest.approx(aucs[1, 0], abs=1e-6),
        SuiteRun("pair", VISITOR, "beta", 2): pytest.approx(aucs[2, 1], abs=1e-6),
    }


@pytest.mark.slow
def test_the_number_of_processes_does_not_matter(small: Suite) -> None:
    assert play("oort", small, jobs=2).text(small) == play("oort", small).text(small)


def test_what_is_there_is_not_played_again(small: Suite) -> None:
    kept: list[Submission] = []
    whole = play("hqfa", small, keep=kept.append)
    assert [len(it.results) for it in kept] == [*range(1, 13)]  # each run
    again: list[Submission] = []
    assert play("hqfa", small, begun=kept[9], keep=again.append) == whole
    assert [len(it.results) for it in again] == [11, 12]


@pytest.mark.slow
def test_a_class_and_an_agent_of_this_process_can_play(small: Suite) -> None:
    class Idle(Policy):
        """Hires nobody."""

        def act(self, observation: Observation) -> Offer:
            return Offer.none()

    cells = small.cells((RESIDENT,), ("single",), (1,))
    found = play(POLICIES.names_of([Idle])[0], small, cells=cells)
    assert max(found.results.values()) < 0.2
    assert list(found.plugins) == ["policy idle"]
    spaces = FlatCodec(observed_bounds(small.market("single").scenario, "alpha"), 2.0)
    shy = policy_from(lambda _: np.full(12, -1.0), spaces=spaces, name="shy")
    played = play("shy", small, cells=cells)
    assert played.results == found.results
    assert played.agent == played.plugins["policy shy"]["sha256"] == shy.agent_digest(None)


def test_what_cannot_play_is_named_with_where(small: Suite) -> None:
    class Broken(Policy):
        """Fails."""

        def act(self, observation: Observation) -> Offer:
            return Offer(np.array([0]), np.array([1e9]))

    with pytest.raises(InputError, match="unknown policy 'hqfb'; did you mean 'hqfa'"):
        play("hqfb", small)
    with pytest.raises(InputError, match="policy 'hqfa' takes no checkpoint"):
        play("hqfa:agent.safetensors", small, begun=entry("hqfa", small))
    with pytest.raises(RunError, match=r"broken failed in pair/resident/all of the suite, seed 1: .* round 1"):
        play(POLICIES.names_of([Broken])[0], small)
