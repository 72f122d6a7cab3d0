"""Checks of the data that a scenario's clients hold: that it can exist, be supplied, and cost what can be paid."""

from collections.abc import Iterator, Mapping
from typing import Protocol

from des.money import to_micro
from fl.backends import BACKENDS
from fl.data.dqi import largest_emd
from fl.data.partition import largest_count, realised_emd
from fl.data.validation_split import held_out, left_at_least
from scenarios.file.problems import Finding, number
from scenarios.file.schema import Scenario

LARGEST_COST = 10_000_000  # money; the costs of the largest population still add up inside 64 bits of micro-units


class DatasetFacts(Protocol):
    """The facts about a data set that the checks need."""

    @property
    def labels(self) -> int:
        """L."""

    @property
    def train_size(self) -> int:
        """Training images."""

    @property
    def test_size(self) -> int:
        """Test images."""

    @property
    def rarest_label(self) -> int:
        """Training images of the label that has the fewest."""


def check_data(
    scenario: Scenario,
    used: Mapping[str, DatasetFacts],  # the data sets that its services learn, by name
) -> Iterator[Finding]:
    """Yield what is wrong with the data that clients are to hold."""
    clients = scenario.clients
    if clients.label_mix.dirichlet is None and not clients.emd:
        yield Finding(("clients", "emd"), "is missing; list EMDs, or give a label_mix")
    elif clients.label_mix.dirichlet is not None and clients.emd:
        yield Finding(
            ("clients", "label_mix"),
            "cannot be given together with clients.emd; remove one of them (emd = [] is none)",
        )
    if used:
        yield from _emds(scenario, used)
    for name, facts in used.items():
        yield from check_supply(scenario, name, facts)
    yield from _costs(scenario, used)


def check_supply(scenario: Scenario, name: str, facts: DatasetFacts) -> Iterator[Finding]:
    """Yield what a data set lacks: images to hold out, and images of each label for the most lopsided draw."""
    trains = BACKENDS[scenario.training.backend].trains
    share = scenario.training.validation if trains else 0.0
    if share and not held_out(facts.train_size, share):
        yield Finding(
            ("training", "validation"),
            f"{share} of the {number(facts.train_size)} training images of {name} is not one image; set a larger "
            "share, or 0 to measure accuracy on the test images",
        )
    left = left_at_least(facts.rarest_label, share)
    has = f"has {number(facts.rarest_label)}"
    if left < facts.rarest_label:
        has += f", of which training.validation = {share} leaves {number(left)}"
    for i, size in enumerate(scenario.clients.data_size):
        place = ("clients", "data_size", i)
        if size > facts.train_size:
            yield Finding(
                place, f"{number(size)} images are more than the {number(facts.train_size)} training images of {name}"
            )
            continue
        needed, emd = max(
            ((largest_count(size, emd, facts.labels), emd) for emd in _emds_of(scenario, facts)), default=(0, 0.0)
        )
        if needed > left:
            yield Finding(
                place,
                f"{number(size)} images at EMD {emd!r} can need {number(needed)} of one of the {facts.labels} labels; "
                f"the rarest label of {name} {has}",
            )


def _emds(scenario: Scenario, used: Mapping[str, DatasetFacts]) -> Iterator[Finding]:
    name, facts = min(used.items(), key=lambda item: item[1].labels)
    limit = largest_emd(facts.labels)
    for i, emd in enumerate(scenario.clients.emd):
        if emd > limit:
            yield Finding(
                ("clients", "emd", i),
                f"must be at most {limit:g} = 2 (1 - 1/{facts.labels}) for the {facts.labels} labels of {name}, "
                f"not {number(emd)}",
            )


def _emds_of(scenario: Scenario, facts: DatasetFacts) -> list[float]:
    """Return the EMDs that can be asked for and that can exist."""
    return [emd for emd in scenario.clients.emds(facts.labels) if emd <= largest_emd(facts.labels)]


def _costs(scenario: Scenario, used: Mapping[str, DatasetFacts]) -> Iterator[Finding]:
    """No data set costs a client a negative or absurd amount, at the EMD that it really gets.

    What clients bid for a cost is up to their behaviour, which keeps bids from becoming negative.
    """
    cost = scenario.clients.cost
    costs = [
        (cost.per_sample * size - cost.per_emd * real, size, real)
        for facts in used.values()
        for size in scenario.clients.data_size
        for emd in _emds_of(scenario, facts)
        for real in [realised_emd(size, emd, facts.labels)]
    ]
    if not costs:
        return
    lowest, highest = min(costs), max(costs)
    if to_micro(min(lowest[0], 0.0)) < 0:
        yield Finding(("clients", "cost"), f"{_what(*lowest)}, and must not be negative")
    with_noise = highest[0] * (1 + cost.noise)
    if with_noise > LARGEST_COST:
        what = _what(with_noise, *highest[1:])
        yield Finding(("clients", "cost"), f"{what}, above the limit of {number(LARGEST_COST)}")


def _what(cost: float, size: int, emd: float) -> str:
    return f"the cost of {number(size)} images at EMD {emd:g} would be {cost:.6f}"
