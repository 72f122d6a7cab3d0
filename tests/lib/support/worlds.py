"""Worlds of all kinds, each as a scenario of few rounds: what there is to play, verify, resume and fork."""

from typing import NamedTuple

from scenarios.file.schema import Scenario
from scenarios.loader import load, parse
from support.scenarios import TWO_SERVICES

CHANGING = """
name = "changing"
rounds = 12
dqi = "published"

[clients]
count = 10
cores = 1
data_size = [100, 200, 300]
emd = [0.4, 0.8]
cost = { per_sample = 0.025, per_emd = 1.0 }

[clients.lasting]
persistence = 0.8
drift = 0.1

[training]
backend = "surrogate"

[[services]]
name = "early"
dataset = "mnist"
budget = 20
total_budget = 60
arrival = 3
target_accuracy = 0.999
reward_base = 60
policy = "hqfa"

[[services]]
name = "late"
dataset = "fashion-mnist"
budget = 20
arrival = 6
target_accuracy = 0.99
reward_base = 60
policy = "random"
"""

MIXED = """
name = "mixed"
rounds = 4
dqi = "published"

[clients]
count = 12
cores = 1
data_size = [40, 80, 120]
label_mix = { dirichlet = 0.3 }
cost = { per_sample = 0.05, per_emd = 1.0 }

[training]
eval_samples = 200
local_epochs = 1

[[services]]
name = "first"
dataset = "digits"
budget = 12
target_accuracy = 0.99
reward_base = 60
policy = "hqfa"

[[services]]
name = "second"
dataset = "strokes"
budget = 12
target_accuracy = 0.99
reward_base = 60
policy = "random"
"""

QUICK = ("training.backend=surrogate", "training.local_epochs=2", "rounds=8")
LASTING = "clients.lasting={ persistence = 0.7, drift = 0.1 }"
SURROGATE = ("rounds=12", "training.backend=surrogate", "clients.speed=[0.3, 1.0]", "timeline.upload_seconds=0.1")

SWITCHES = (
    (4, "services.alpha.policy", '"ucb"'),
    (5, "market.mechanism", '{ mechanism = "posted-price", options = { price_per_sample = 0.08 } }'),
    (6, "services.beta.policy", '{ policy = "random" }'),
    (7, "market.mechanism", '"uniform-price"'),
)


def switching(*changes: tuple[int, str, str]) -> str:
    """A market of two services with interventions: round, key and value of each."""
    tables = [f'[[interventions]]\nround = {n}\nkey = "{key}"\nvalue = {value}\n' for n, key, value in changes]
    return f'name = "switching"\n{TWO_SERVICES}{"".join(tables)}'


def behaving(kind: str, **options: object) -> tuple[str, ...]:
    """Overrides that give clients a behaviour."""
    return (f"clients.behaviour.kind={kind}", *(f"clients.behaviour.options.{key}={options[key]}" for key in options))


BEHAVIOURS = {
    "markup": behaving("markup", share=0.25),
    "adaptive": behaving("adaptive", exploration=0.5),
    "misreport": behaving("misreport", size=0.5, emd=-0.3, share=0.5),
    "ring": behaving("ring", size=4),
}


class World(NamedTuple):
    """A scenario as text or by its name, what is changed in it, and who plays."""

    scenario: str
    changes: tuple[str, ...] = ()
    policy: str | None = None

    def load(self, *changes: str) -> Scenario:
        """Return the scenario, with further changes."""
        read = parse if "\n" in self.scenario else load
        return read(self.scenario, overrides=[*self.changes, *changes])


PRIVATE = ("training.backend=surrogate", "rounds=12", *behaving("misreport", size=0.5))
TRAINED = ("training.backend=real", "training.model=mlp", "training.local_epochs=2", "services.beta.policy=random")
WORLDS = {
    "changing": World(CHANGING),
    "mixed": World(MIXED, (*QUICK, LASTING)),
    "mixed, trained": World(MIXED, ("rounds=2",)),
    "private": World("private", PRIVATE, "hqfa"),
    "private, adaptive": World("private", (*PRIVATE[:2], *behaving("adaptive")), "pacing"),
    "split": World(switching(), (*TRAINED, "rounds=6", "services.beta.target_accuracy=0.5")),
    "no split": World(switching(), (*TRAINED, "rounds=6", "training.validation=0")),
    "switching": World(switching(*SWITCHES)),
    **{kind: World("scarce", (*SURROGATE, *changes), "hqfa") for kind, changes in BEHAVIOURS.items()},
    "truthful": World("scarce", SURROGATE, "hqfa"),
}

EVEN = '''
import flmarket

@flmarket.behaviour("even")
class Even(flmarket.Behaviour):
    """Asks twice its cost in even rounds."""

    def bids(self, round_, costs):
        return costs * (2 if round_ % 2 == 0 else 1)

    def bid_range(self, lowest, highest):
        return lowest, highest * 2
'''
"""A plug-in file with a behaviour."""
