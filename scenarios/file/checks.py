"""Checks of a scenario that involve several keys, or what is installed: names, data that exists, costs, sizes.

They run on whatever part of the data is fine in itself, so that one broken key hides no other problem.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from des.behaviours import BEHAVIOURS, TRUTHFUL
from des.mechanisms import DEFAULT, MECHANISMS
from des.money import to_micro
from fl.backends import BACKENDS, REAL
from fl.errors import InputError
from fl.fitted import FitError, dqi_fit
from fl.model_names import BUILTIN as BUILTIN_MODELS
from fl.names import unknown_plugin
from fl.own_files import is_path
from fl.partition import largest_count, realised_emd
from fl.quality import largest_emd
from fl.regime import Regime
from fl.shares import held_out, left_at_least
from scenarios.file.availability import check_availability
from scenarios.file.interventions import check_interventions
from scenarios.file.option_checks import behaviour_options, mechanism_options, policy_options
from scenarios.file.problems import Finding, Path, number, quoted
from scenarios.file.readable import Readable
from scenarios.file.regimes import KEYS, choose
from scenarios.file.schema import Scenario, Training

LARGEST_COST = 10_000_000
"""Money; the costs of the largest population still add up inside 64 bits of micro-units."""

LARGEST_MARKET = 10_000_000
"""Clients times services: every array of a round has this many numbers."""


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


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What a scenario may name.

    Attributes:
        datasets: names of the data sets; paths of a user's own files may be named as well.
        facts: returns what is known of a data set, by name.
        policies: names of the policies.
        models: names of the models.
        mechanisms: names of the mechanisms.
        behaviours: names of the client behaviours.
        fits: whether the fits that it needs must be there; calibration, which makes them, does without.
        played: whether the scenario is that of a run that was played before; plug-ins that it names need not be here.
        obstacles: yields what cannot be created as a scenario asks, if that is to be tried (``scenarios.trial``).
    """

    datasets: Collection[str]
    facts: Callable[[str], DatasetFacts]
    policies: Collection[str]
    models: Collection[str] = tuple(BUILTIN_MODELS)
    mechanisms: Collection[str] = (DEFAULT,)
    behaviours: Collection[str] = (TRUTHFUL,)
    fits: bool = False
    played: bool = False
    obstacles: Callable[[Scenario], Iterator[Finding]] | None = None


def installed(*, fits: bool = True) -> Catalogue:
    """Return what a scenario may name in this installation. ``fits`` as in ``Catalogue``."""
    # Not at the top: scenarios with problems of an earlier kind do without these imports.
    from fl.datasets import info, names
    from fl.model_names import MODELS
    from learning.policy import POLICIES

    return Catalogue(names(), info, POLICIES.names(), MODELS.names(), MECHANISMS.names(), BEHAVIOURS.names(), fits=fits)


def played() -> Catalogue:
    """Return what the scenario of a run that was played before may name: anything. Nothing is to be played again.

    Of data sets, those that come with flmarket alone are looked at: a user's own may be gone, or others by now.
    """
    from fl.datasets import BUILTIN

    return replace(installed(fits=False), datasets=tuple(BUILTIN), played=True)


def check(readable: Readable, catalogue: Catalogue) -> Iterator[Finding]:
    """Yield all that is wrong across keys."""
    yield from _unique_names(readable)
    if not catalogue.played:
        yield from _known_names(readable, catalogue)
        yield from mechanism_options(readable, catalogue.mechanisms)
        yield from behaviour_options(readable, catalogue.behaviours)
        yield from check_availability(readable)
    if catalogue.obstacles:
        yield from policy_options(readable, catalogue.policies)
    yield from _timeline(readable)
    yield from _arrivals(readable)
    yield from _market_size(readable)
    yield from check_interventions(readable, None if catalogue.played else catalogue)
    used: dict[str, DatasetFacts] = {}
    for i in readable.places("services"):
        name = readable.get("services", i, "dataset")
        known = name is not None and (name in catalogue.datasets or (is_path(name) and not catalogue.played))
        if known and name not in used:
            try:
                used[name] = catalogue.facts(name)
            except InputError as error:  # of a plug-in or files, which are loaded for them
                yield Finding(("services", i, "dataset"), str(error))
    yield from _evaluation(readable, used)
    yield from _split(readable, used)
    yield from _emds(readable, used)
    yield from _supply(readable, used)
    yield from _costs(readable, used)
    if catalogue.fits:
        yield from _fits(readable, used)


def _unique_names(readable: Readable) -> Iterator[Finding]:
    first: dict[str, Path] = {}
    for i in readable.places("services"):
        name, path = readable.get("services", i, "name"), ("services", i, "name")
        if name is not None and first.setdefault(name, path) != path:
            yield Finding(path, f"is also the name of another service: {quoted(name)}", see=first[name])


def _known_names(readable: Readable, catalogue: Catalogue) -> Iterator[Finding]:
    named: list[tuple[Path, str, Collection[str]]] = [
        (("services", i, key), kind, known)
        for i in readable.places("services")
        for key, kind, known in (
            ("dataset", "data set", catalogue.datasets),
            ("policy", "policy", catalogue.policies),
        )
    ]
    tables = [("training",), *(("training", "by_dataset", name) for name in readable.keys("training", "by_dataset"))]
    named += [((*table, "model"), "model", catalogue.models) for table in tables]
    named.append((("market", "mechanism"), "mechanism", catalogue.mechanisms))
    named.append((("clients", "behaviour", "kind"), "behaviour", catalogue.behaviours))
    for path, kind, known in named:
        name = readable.get(*path)
        if name is not None and name not in known and not (kind == "data set" and is_path(name)):
            yield Finding(path, unknown_plugin(kind, name, known))
    for name in readable.keys("training", "by_dataset"):
        if name not in catalogue.datasets and not is_path(name):
            yield Finding(("training", "by_dataset", name), unknown_plugin("data set", name, catalogue.datasets))


def _timeline(readable: Readable) -> Iterator[Finding]:
    slot, deadline = readable.get("timeline", "slot"), readable.get("timeline", "deadline")
    if slot is not None and deadline is not None and deadline > slot:
        yield Finding(
            ("timeline", "deadline"), f"must be at most the slot of {number(slot)} seconds, not {number(deadline)}"
        )


def _arrivals(readable: Readable) -> Iterator[Finding]:
    rounds = readable.get("rounds")
    for path in [("services", i, "arrival") for i in readable.places("services")]:
        if rounds is not None and (arrival := readable.get(*path)) is not None and arrival > rounds:
            yield Finding(path, f"must be at most the {number(rounds)} rounds, not {number(arrival)}")


def _market_size(readable: Readable) -> Iterator[Finding]:
    count, services = readable.get("clients", "count"), len(readable.places("services"))
    if count is not None and count * services > LARGEST_MARKET:
        yield Finding(
            ("clients", "count"),
            f"{number(count)} clients times {number(services)} services are more than {number(LARGEST_MARKET)}",
        )


def _evaluation(readable: Readable, used: Mapping[str, DatasetFacts]) -> Iterator[Finding]:
    wanted = readable.get("training", "eval_samples")
    if wanted is None or not used:
        return
    name, facts = min(used.items(), key=lambda item: item[1].test_size)
    if wanted > facts.test_size:
        yield Finding(
            ("training", "eval_samples"),
            f"must be at most {number(facts.test_size)}, the test images of {name}, not {number(wanted)}",
        )


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
    """Yield the place of D, D and EMD of each data set that can be asked for and that can exist."""
    limit = largest_emd(facts.labels)
    for i, size in readable.items("clients", "data_size"):
        for _, emd in readable.items("clients", "emd"):
            if emd <= limit:
                yield i, size, float(emd)


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
    if highest[0] > LARGEST_COST:
        yield Finding(("clients", "cost"), f"{_what(*highest)}, above the limit of {number(LARGEST_COST)}")


def _fits(readable: Readable, used: Collection[str]) -> Iterator[Finding]:
    """Every data set has the fits that the scenario asks for."""
    # An absent key has its default; of a broken one nothing is known.
    present = readable.keys()
    fitted = readable.get("dqi") == "fitted" or "dqi" not in present
    written = "backend" in readable.keys("training")
    backend = BACKENDS.get(readable.get("training", "backend")) if written else REAL
    for i in readable.places("services"):
        name = readable.get("services", i, "dataset")
        if name not in used:
            continue
        try:
            if fitted:
                dqi_fit(name)
            if backend and (regime := _regime(readable, name)):
                backend.fits(name, regime)
        except FitError as error:
            yield Finding(("services", i, "dataset"), str(error))


def _regime(readable: Readable, dataset: str) -> Regime | None:
    """Return the training regime of a data set, or None where a key of it is broken."""
    tables: tuple[Path, ...] = (("training", "by_dataset", dataset), ("training",))
    written = [{key: readable.get(*table, key) for key in readable.keys(*table) if key in KEYS} for table in tables]
    if any(value is None for table in written for value in table.values()):
        return None
    return choose(dataset, written).regime


def _what(cost: float, size: int, emd: float) -> str:
    return f"the cost of {number(size)} images at EMD {emd:g} would be {cost:.6f}"
