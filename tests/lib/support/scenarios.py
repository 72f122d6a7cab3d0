"""Small markets as text: ``SMALL``, one service, three clients, two rounds; and services that compete.

``TWO_SERVICES`` on the surrogate, six clients, eight rounds, lacks a name.
"""

import pytest

from scenarios.loader import ScenarioError, parse

SMALL = """\
name = "small"
rounds = 2
[clients]
count = 3
cores = 1
data_size = [20]
emd = [0.2]
cost = { per_sample = 0.05, per_emd = 1.0 }
[[services]]
name = "one"
dataset = "digits"
budget = 3
target_accuracy = 0.99
reward_base = 10
policy = "random"
"""

TWO_SERVICES = """\
rounds = 8
dqi = "published"
[clients]
count = 6
cores = 1
data_size = [40, 80]
emd = [0.2, 0.8]
cost = { per_sample = 0.05, per_emd = 1.0 }
[training]
backend = "surrogate"
[[services]]
name = "alpha"
dataset = "digits"
budget = 10
target_accuracy = 0.99
reward_base = 60
policy = "lcfa"
[[services]]
name = "beta"
dataset = "strokes"
budget = 10
target_accuracy = 0.99
reward_base = 60
policy = "ucb"
"""


def three_services(alpha: str, beta: str, gamma: str) -> str:
    """Three services that compete for the same clients over MNIST, each with a policy, as text for a scenario."""
    return "".join(
        f"""
[[services]]
name = "{name}"
dataset = "mnist"
budget = {budget}
target_accuracy = 0.99
reward_base = 60
policy = "{policy}"
"""
        for name, budget, policy in (("alpha", 9, alpha), ("beta", 8, beta), ("gamma", 12, gamma))
    )


def problems(text: str, *overrides: str) -> list[str]:
    """Return what is wrong with a scenario, which stands in the file ``f``."""
    with pytest.raises(ScenarioError) as caught:
        parse(text, "f", overrides)
    return [str(problem) for problem in caught.value.problems]
