"""Checks of a scenario: each key by the schema, then what involves several keys, or what is installed."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from des.behaviours.behaviour import BEHAVIOURS, TRUTHFUL
from des.mechanisms.mechanism import DEFAULT, MECHANISMS
from fl.backends import BACKENDS
from fl.data.own_files import is_path
from fl.surrogate.fitted import FitError, dqi_fit
from fl.training.models import BUILTIN as BUILTIN_MODELS
from flmarket.core.errors import InputError
from scenarios.file.availability import trace_of
from scenarios.file.data_checks import DatasetFacts, check_data
from scenarios.file.interventions import check_interventions
from scenarios.file.option_checks import check_options, check_policy_options
from scenarios.file.problems import Finding, Path, number, quoted
from scenarios.file.schema import DATASET, Scenario
from scenarios.file.wording import findings

LARGEST_MARKET = 10_000_000  # clients times services: every array of a round has this many numbers


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The names that a scenario may use."""

    datasets: Collection[str]  # names of the data sets; paths of a user's own files may be named as well
    facts: Callable[[str], DatasetFacts]  # returns what is known of a data set, by name
    policies: Collection[str]  # names of the policies
    models: Collection[str] = tuple(BUILTIN_MODELS)  # names of the models
    mechanisms: Collection[str] = (DEFAULT,)  # names of the mechanisms
    behaviours: Collection[str] = (TRUTHFUL,)  # names of the client behaviours
    fits: bool = False  # whether the fits that it needs must be there; calibration, which makes them, does without
    # whether the scenario is that of a run that was played before; plug-ins that it names need not be here
    played: bool = False
    own_policies: bool = False  # whether the policies that it names play, whose options are then checked as well
    # yields what cannot be created as a scenario asks, if that is to be tried (``scenarios.playable``)
    obstacles: Callable[[Scenario], Iterator[Finding]] | None = None

    @property
    def names(self) -> Mapping[str, Collection[str]]:
        """The names by the kind of what they name, as the schema has it."""
        return {
            DATASET: self.datasets,
            "policy": self.policies,
            "model": self.models,
            "mechanism": self.mechanisms,
            "behaviour": self.behaviours,
        }


def installed(*, fits: bool = True) -> Catalogue:
    """Return what a scenario may name in this installation. ``fits`` as in ``Catalogue``."""
    # Not at the top: scenarios with problems of an earlier kind do without these imports.
    from fl.data.registry import info, names
    from fl.training.models import MODELS
    from learning.policy import POLICIES

    return Catalogue(names(), info, POLICIES.names(), MODELS.names(), MECHANISMS.names(), BEHAVIOURS.names(), fits=fits)


def played() -> Catalogue:
    """Return what the scenario of a run that was played before may name: anything. Nothing is to be played again.

    Of data sets, those that come with flmarket alone are looked at: a user's own may be gone, or others by now.
    """
    from fl.data.registry import BUILTIN

    return replace(installed(fits=False), datasets=tuple(BUILTIN), played=True)


def examine(
    data: Mapping[str, Any],  # as ``tomllib`` reads it, with a flat ``sweep``; its values are not examined
    catalogue: Catalogue,
) -> tuple[Scenario | None, list[Finding]]:
    """Return the scenario, or None and what is wrong: with its keys, or, if each is fine by itself, across keys."""
    try:
        scenario = Scenario.model_validate(data, context=None if catalogue.played else catalogue.names)
    except ValidationError as error:
        return None, findings(error)
    found = [*_check(scenario, catalogue)]
    if not found and catalogue.obstacles:
        found = [*catalogue.obstacles(scenario)]
    return (None if found else scenario), found


def _check(scenario: Scenario, catalogue: Catalogue) -> Iterator[Finding]:
    """Yield all that is wrong across keys."""
    yield from _unique_names(scenario)
    if not catalogue.played:
        yield from check_options(scenario)
        try:
            trace_of(scenario)
        except InputError as error:
            yield Finding(("clients", "availability"), str(error))
    if catalogue.own_policies:
        yield from check_policy_options(scenario)
    yield from _times(scenario)
    yield from _market_size(scenario)
    yield from check_interventions(scenario, None if catalogue.played else catalogue.names)
    used: dict[str, DatasetFacts] = {}
    for i, service in enumerate(scenario.services):
        name = service.dataset
        known = name in catalogue.datasets or (is_path(name) and not catalogue.played)
        if known and name not in used:
            try:
                used[name] = catalogue.facts(name)
            except InputError as error:  # of a plug-in or files, which are loaded for them
                yield Finding(("services", i, "dataset"), str(error))
    yield from _evaluation(scenario, used)
    yield from check_data(scenario, used)
    if catalogue.fits:
        yield from _fits(scenario, used)


def _unique_names(scenario: Scenario) -> Iterator[Finding]:
    first: dict[str, Path] = {}
    for i, service in enumerate(scenario.services):
        path = ("services", i, "name")
        if first.setdefault(service.name, path) != path:
            yield Finding(path, f"is also the name of another service: {quoted(service.name)}", see=first[service.name])


def _times(scenario: Scenario) -> Iterator[Finding]:
    slot, deadline = scenario.timeline.slot, scenario.timeline.deadline
    if slot is not None and deadline is not None and deadline > slot:
        yield Finding(
            ("timeline", "deadline"), f"must be at most the slot of {number(slot)} seconds, not {number(deadline)}"
        )
    for i, service in enumerate(scenario.services):
        if service.arrival > scenario.rounds:
            yield Finding(
                ("services", i, "arrival"),
                f"must be at most the {number(scenario.rounds)} rounds, not {number(service.arrival)}",
            )


def _market_size(scenario: Scenario) -> Iterator[Finding]:
    count, services = scenario.clients.count, len(scenario.services)
    if count * services > LARGEST_MARKET:
        yield Finding(
            ("clients", "count"),
            f"{number(count)} clients times {number(services)} services are more than {number(LARGEST_MARKET)}",
        )


def _evaluation(scenario: Scenario, used: Mapping[str, DatasetFacts]) -> Iterator[Finding]:
    wanted = scenario.training.eval_samples
    if wanted is None or not used:
        return
    name, facts = min(used.items(), key=lambda item: item[1].test_size)
    if wanted > facts.test_size:
        yield Finding(
            ("training", "eval_samples"),
            f"must be at most {number(facts.test_size)}, the test images of {name}, not {number(wanted)}",
        )


def _fits(scenario: Scenario, used: Collection[str]) -> Iterator[Finding]:
    backend = BACKENDS[scenario.training.backend]
    for i, service in enumerate(scenario.services):
        if service.dataset in used:
            try:
                if scenario.dqi == "fitted":
                    dqi_fit(service.dataset)
                backend.fits(service.dataset, scenario.training_for(service.dataset))
            except FitError as error:
                yield Finding(("services", i, "dataset"), str(error))
