"""Scenarios whose clients' label mixes are drawn from a Dirichlet distribution."""

import pytest

from scenarios.loader import dumps, load, parse
from support.scenarios import problems
from support.worlds import MIXED, WORLDS

NEITHER = "is missing; list EMDs, or give a label_mix or a data.partition"


def test_the_list_of_emds_makes_way_for_a_label_mix_on_the_command_line() -> None:
    mixed = load("paper", ["clients.emd=[]", "clients.label_mix.dirichlet=0.3"])
    assert mixed.clients.emd == ()
    assert parse(dumps(mixed)) == mixed


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        (
            "label_mix =", "emd = [0.4]\nlabel_mix =",
            "f:11: clients.label_mix: cannot be given together with clients.emd; remove one of them (emd = [] is none)",
        ),
        ("label_mix = { dirichlet = 0.3 }\n", "", f"f:6: clients.emd: {NEITHER}"),
        ("{ dirichlet = 0.3 }", "{}", f"f:6: clients.emd: {NEITHER}"),
        ("label_mix = { dirichlet = 0.3 }", "emd = []", f"f:10: clients.emd: {NEITHER}"),
        ("= 0.3", "= 0", "f:10: clients.label_mix.dirichlet: must be greater than or equal to 0.001, not 0"),
        ("{ dirichlet = 0.3 }", "0.3", "f:10: clients.label_mix: must be a table, not 0.3"),
        ("dirichlet", "dirichlett", "f:10: clients.label_mix.dirichlett: unknown key; did you mean 'dirichlet'?"),
        (
            "80, 120]", "80, 140]",
            "f:9: clients.data_size: 140 images at EMD 1.8 can need 140 of one of the 10 labels; "
            "the rarest label of digits has 139, of which training.validation = 0.1 leaves 125",
        ),
        (
            "per_emd = 1.0", "per_emd = 1.2",
            "f:11: clients.cost: the cost of 40 images at EMD 1.8 would be -0.160000, and must not be negative",
        ),
    ],
)  # fmt: skip
def test_impossible_worlds_are_refused(before: str, after: str, problem: str) -> None:
    assert problems(MIXED.replace(before, after, 1)) == [problem]


def test_environments_hold_every_observation() -> None:
    pytest.importorskip("pettingzoo")
    from flmarket.learn import parallel_env

    env = parallel_env(WORLDS["mixed"].load())
    observations, _ = env.reset(seed=1)
    while env.agents:
        for agent, seen in observations.items():
            assert env.observation_space(agent).contains(seen), agent
        observations, *_ = env.step({agent: env.action_space(agent).sample() for agent in env.agents})
