"""Checks of a scenario that involve several keys, or what is installed: names, data that exists, costs, sizes.

They run on whatever part of the data is fine in itself, so that one broken key hides no other problem.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from des.behaviour import BEHAVIOURS, TRUTHFUL
from des.mechanism import DEFAULT, MECHANISMS
from fl.backends import BACKENDS, REAL
from fl.errors import InputError
from fl.fitted import FitError, dqi_fit
from fl.model_names import BUILTIN as BUILTIN_MODELS
from fl.names import unknown_plugin
from fl.own_files import is_path
from fl.regime import Regime
from scenarios.file.availability import check_availability
from scenarios.file.data_checks import DatasetFacts, check_data
from scenarios.file.interventions import check_interventions
from scenarios.file.option_checks import behaviour_options, mechanism_options, policy_options
from scenarios.file.problems import Finding, Path, number, quoted
from scenarios.file.readable import Readable
from scenarios.file.regimes import KEYS, choose
from scenarios.file.schema import Scenario

LARGEST_MARKET = 10_000_000  # clients times services: every array of a round has this many numbers


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What a scenario may name."""

    datasets: Collection[str]  # names of the data sets; paths of a user's own files may be named as well
    facts: Callable[[str], DatasetFacts]  # returns what is known of a data set, by name
    policies: Collection[str]  # names of the policies
    models: Collection[str] = tuple(BUILTIN_MODELS)  # names of the models
    mechanisms: Collection[str] = (DEFAULT,)  # names of the mechanisms
    behaviours: Collection[str] = (TRUTHFUL,)  # names of the client behaviours
    fits: bool = False  # whether the fits that it needs must be there; calibration, which makes them, does without
    # whether the scenario is that of a run that was played before; plug-ins that it names need not be here
    played: bool = False
    # yields what cannot be created as a scenario asks, if that is to be tried (``scenarios.trial``)
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
    yield from check_data(readable, used)
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


def _fits(readable: Readable, used: Collection[str]) -> Iterator[Finding]:
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
