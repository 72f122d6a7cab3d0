"""Checks of the data that a scenario's clients hold: that it can exist, be supplied, and cost what can be paid."""

from collections.abc import Iterator, Mapping
from typing import Protocol

from des.money import to_micro
from fl.backends import BACKENDS, REAL
from fl.partition import largest_count, realised_emd
from fl.quality import largest_emd
from fl.split import held_out, left_at_least
from scenarios.file.problems import Finding, number
from scenarios.file.readable import Readable
from scenarios.file.schema import Training

LARGEST_COST = 10_000_000  # money; the costs of the largest population still add up inside 64 bits of micro-units

MIX = ("clients", "label_mix", "dirichlet")
"""Where a scenario says from which label mixes EMDs come, in place of a list of them."""


class DatasetFacts(Protocol):
    """What the checks must know of a data set."""

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


def check_data(readable: Readable, used: Mapping[str, DatasetFacts]) -> Iterator[Finding]:
    """Yield what is wrong with the data that clients are to hold."""
    yield from _either(readable)
    yield from _split(readable, used)
    yield from _emds(readable, used)
    yield from _supply(readable, used)
    yield from _costs(readable, used)


def _either(readable: Readable) -> Iterator[Finding]:
    """EMDs are listed, or follow from label mixes; an empty list stands for none, so that ``--set`` can remove one."""
    keys, listed = readable.keys("clients"), readable.places("clients", "emd")
    mixed = MIX[1] in keys and readable.get(*MIX[:-1]) != {}
    if mixed and listed:
        yield Finding(MIX[:-1], "cannot be given together with clients.emd; remove one of them (emd = [] is none)")
    elif keys and not mixed and "emd" not in keys:
        yield Finding(("clients", "emd"), "is missing; list EMDs, or give a label_mix")
    elif not mixed and not listed and readable.get("clients", "emd") is not None:
        yield Finding(("clients", "emd"), "must not be empty")


def _emds(readable: Readable, used: Mapping[str, DatasetFacts]) -> Iterator[Finding]:
    if not used:
        return
    name, facts = min(used.items(), key=lambda item: item[1].labels)
    limit = largest_emd(facts.labels)
    for i, emd in readable.items("clients", "emd"):
        if emd > limit:
            yield Finding(
                ("clients", "emd", i),
                f"must be at most {limit:g} = 2 (1 - 1/{facts.labels}) for the {facts.labels} labels of {name}, "
                f"not {number(emd)}",
            )


def _pairs(readable: Readable, facts: DatasetFacts) -> Iterator[tuple[int, int, float]]:
    """Yield the place of D, D and EMD of each data set that can be asked for and that can exist.

    Of label mixes, from which any EMD can come, the least and the largest.
    """
    limit = largest_emd(facts.labels)
    listed = [emd for _, emd in readable.items("clients", "emd")]
    for i, size in readable.items("clients", "data_size"):
        for emd in listed if readable.get(*MIX) is None else (0.0, limit):
            if emd <= limit:
                yield i, size, float(emd)


def _share(readable: Readable) -> float:
    """Return the share of training images that is held out: 0 where nothing is trained, or a key is broken."""
    keys = readable.keys("training")
    backend = BACKENDS.get(readable.get("training", "backend")) if "backend" in keys else REAL
    if backend is None or not backend.trains:
        return 0.0
    return (readable.get("training", "validation") if "validation" in keys else Training().validation) or 0.0


def _split(readable: Readable, used: Mapping[str, DatasetFacts]) -> Iterator[Finding]:
    share = _share(readable)
    for name, facts in used.items():
        if share and not held_out(facts.train_size, share):
            yield Finding(
                ("training", "validation"),
                f"{share} of the {number(facts.train_size)} training images of {name} is not one image; set a larger "
                "share, or 0 to measure accuracy on the test images",
            )


def _supply(readable: Readable, used: Mapping[str, DatasetFacts]) -> Iterator[Finding]:
    """Data sets hold enough images, also of their rarest label, for the most lopsided draw after the split."""
    share = _share(readable)
    for name, facts in used.items():
        for i, size in readable.items("clients", "data_size"):
            if size > facts.train_size:
                yield Finding(
                    ("clients", "data_size", i),
                    f"{number(size)} images are more than the {number(facts.train_size)} training images of {name}",
                )
        left = left_at_least(facts.rarest_label, share)
        has = f"has {number(facts.rarest_label)}"
        if left < facts.rarest_label:
            has += f", of which training.validation = {share} leaves {number(left)}"
        worst: dict[int, tuple[int, int, float]] = {}
        for i, size, emd in _pairs(readable, facts):
            needed = largest_count(size, emd, facts.labels)
            if left < needed and size <= facts.train_size:
                worst[i] = max(worst.get(i, (0, 0, 0.0)), (needed, size, emd))
        for i, (needed, size, emd) in worst.items():
            yield Finding(
                ("clients", "data_size", i),
                f"{number(size)} images at EMD {emd!r} can need {number(needed)} of one of the {facts.labels} labels; "
                f"the rarest label of {name} {has}",
            )


def _costs(readable: Readable, used: Mapping[str, DatasetFacts]) -> Iterator[Finding]:
    """No data set costs a client a negative or absurd amount, at the EMD that it really gets.

    What clients bid for a cost is up to their behaviour, which keeps bids from becoming negative.
    """
    cost = readable.get("clients", "cost")
    if cost is None:
        return
    costs = [
        (cost["per_sample"] * size - cost["per_emd"] * real, size, real)
        for facts in used.values()
        for _, size, emd in _pairs(readable, facts)
        for real in [realised_emd(size, emd, facts.labels)]
    ]
    if not costs:
        return
    lowest, highest = min(costs), max(costs)
    if to_micro(min(lowest[0], 0.0)) < 0:
        yield Finding(("clients", "cost"), f"{_what(*lowest)}, and must not be negative")
    with_noise = highest[0] * (1 + cost.get("noise", 0.0))
    if with_noise > LARGEST_COST:
        what = _what(with_noise, *highest[1:])
        yield Finding(("clients", "cost"), f"{what}, above the limit of {number(LARGEST_COST)}")


def _what(cost: float, size: int, emd: float) -> str:
    return f"the cost of {number(size)} images at EMD {emd:g} would be {cost:.6f}"
