"""Agents as policies: they see what the environments show, and their mistakes are named."""

import numpy as np
import pytest

from flmarket.core.errors import InputError, RunError
from flmarket.core.plugins import PluginError
from learning.environments.agent_policy import policy_from
from learning.environments.spaces import DictCodec, FlatCodec
from learning.evaluation import evaluate, everywhere, lineup
from learning.seats import bounds_of


@pytest.fixture
def spaces(make_market):
    """Those of the markets that ``make_market`` makes with budgets of 30."""
    return FlatCodec(bounds_of(make_market(budget=30_000_000), 0), 2.0)


def best_half(seen):
    """Clients of more than half the highest DQI, for more the poorer the service is."""
    return np.concatenate([2 * seen[:20] - 1, np.full(20, 1 - 2 * seen[-4])])


def test_it_plays_as_the_environment_of_that_market_would(make_market, spaces):
    """Whatever market its spaces are of: budgets are others here."""
    pytest.importorskip("gymnasium")
    from learning.environments.service_env import ServiceEnv

    def make(seed):
        return make_market(seed=seed, budget=20_000_000, cores=1)

    policy_from(best_half, spaces=spaces, name="half")
    rivals = {"beta": "lcfa", "gamma": "outbid"}
    played = evaluate(make, {"half": lineup({"alpha": "half", **rivals})}, [3])
    env = ServiceEnv(make, "alpha", rivals)
    seen, _ = env.reset(seed=3)
    for round_ in range(6):
        seen, _, _, _, info = env.step(best_half(seen))
        assert info["accuracy"] == played.accuracy[0, 0, round_, 0]
        assert info["spent"] == played.spent[0, 0, round_, 0] > 0


def test_a_network_is_played_as_it_was_when_it_was_given(make_market, spaces):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(spaces.observation_space.shape[0], 40), torch.nn.Tanh())
    given = network[0].weight.detach().clone()
    found = policy_from(network, spaces=spaces, name="net")
    with torch.no_grad():
        network[0].weight.zero_()

    def same(seen):
        return np.tanh(given.numpy() @ seen + network[0].bias.detach().numpy())

    policy_from(same, spaces=spaces, name="by-hand")
    entrants = {name: everywhere(name) for name in ("net", "by-hand")}
    played = evaluate(lambda seed: make_market(seed=seed), entrants, [1])
    assert (played.wanted[0] == played.wanted[1]).all()
    np.testing.assert_allclose(played.spent[0], played.spent[1], atol=1e-4)
    assert found.agent_digest(None) != policy_from(network, spaces=spaces, name="net").agent_digest(None)


def failing(seen):
    return seen / {}


def made(act, spaces):
    return policy_from(act, spaces=spaces, name="x")


def test_a_mistake_in_an_agent_is_named_with_its_place(make_market, spaces):
    torch = pytest.importorskip("torch")
    doing = "policy 'x' of service 'alpha' failed to act in round 1"
    market = "in a market of 3 services and 20 clients"
    here = rf"\({__file__}:{made.__code__.co_firstlineno + 1}\)"
    for act, problem in {
        failing: rf": TypeError: unsupported .* \({__file__}:{failing.__code__.co_firstlineno + 1}, in failing\)",
        (lambda _: [3.0]): rf", {market}: an action must hold 40 values, not have shape \(1,\) {here}",
        (lambda _: np.full(40, np.nan)): f", {market}: an action's values must lie between -1 and 1; .* {here}",
        torch.nn.Linear(3, 40): f", {market}: RuntimeError: .* {here}",
    }.items():
        made(act, spaces)
        with pytest.raises(RunError, match=f"^{doing}{problem}$"):
            evaluate(lambda seed: make_market(seed=seed), {"x": everywhere("x")}, [0])


def test_what_is_no_agent_is_refused(spaces):
    with pytest.raises(InputError, match=r"^act = '3': must be a callable or a torch\.nn\.Module$"):
        policy_from(3, spaces=spaces, name="x")
    with pytest.raises(InputError, match=r"^spaces = 'None': must be what flmarket\.spaces returns$"):
        policy_from(best_half, spaces=None, name="x")
    with pytest.raises(
        PluginError, match=r"^policy 'lcfa': the name belongs to a built-in policy; choose another one$"
    ):
        policy_from(best_half, spaces=spaces, name="lcfa")


def test_other_formats_of_the_same_agent_are_other_policies(spaces):
    flat, limit, parts = spaces, FlatCodec(spaces.bounds, 3.0), DictCodec(spaces.bounds, 2.0)
    found = {policy_from(best_half, spaces=it, name="x").agent_digest(None) for it in (flat, limit, parts)}
    assert len(found) == 3
    assert policy_from(best_half, spaces=flat, name="y").agent_digest(None) in found
