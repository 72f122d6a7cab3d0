"""Whether plug-ins (policies, the mechanism, the clients' behaviour) take the options that a scenario gives them.

Only names are checked here, and the values of built-in mechanisms and behaviours; creating the others
(``scenarios.playable``) checks their values.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from des.behaviours.behaviour import BEHAVIOURS, TRUTHFUL
from des.behaviours.behaviour import create as create_behaviour
from des.mechanisms.mechanism import DEFAULT, MECHANISMS
from des.mechanisms.mechanism import create as create_mechanism
from flmarket.core.errors import InputError
from flmarket.core.options import option_problems
from flmarket.core.plugins import Registry
from learning.policy import POLICIES
from scenarios.file.problems import Finding, Path
from scenarios.file.schema import Scenario


def check_options(scenario: Scenario) -> Iterator[Finding]:
    """Yield options of the mechanism and of the clients' behaviour that do not exist, or that they lack."""
    rules, behaviour = scenario.market, scenario.clients.behaviour
    if rules.options or rules.mechanism != DEFAULT:
        yield from _values(MECHANISMS, create_mechanism, rules.mechanism, rules.options, ("market",), "mechanism")
        yield from (Finding(("market", "mechanism"), message) for message in too_large(scenario, rules.mechanism))
    if behaviour.options or behaviour.kind != TRUTHFUL:
        at = ("clients", "behaviour")
        yield from _values(BEHAVIOURS, create_behaviour, behaviour.kind, behaviour.options, at, "kind")


def check_policy_options(scenario: Scenario) -> Iterator[Finding]:
    """Yield options and checkpoints that the services' own policies do not take, and options that they lack.

    Not part of reading a scenario: an option may be meant for the policy that ``--policy`` puts in the place of these.
    Only what has options is loaded, because some policies bring torch.
    """
    for i, service in enumerate(scenario.services):
        at: Path = ("services", i)
        places: dict[str, Path] = {key: (*at, "policy_options", key) for key in service.policy_options}
        given = dict(service.policy_options)
        if service.checkpoint is not None:
            places["checkpoint"], given["checkpoint"] = (*at, "checkpoint"), service.checkpoint
        if given:
            yield from _names(POLICIES, service.policy, given, places, (*at, "policy"), context=1)


def too_large(scenario: Scenario, mechanism: str) -> Iterator[str]:
    """Yield a sentence if the market has more services and clients than a mechanism can clear."""
    largest = getattr(MECHANISMS.load(mechanism), "largest", None)
    services, clients = len(scenario.services), scenario.clients.count
    if largest is not None and services * clients > largest:
        yield (
            f"{mechanism!r} clears markets of at most {largest:,} pairs of a service and a client; this one has "
            f"{services} x {clients:,}; choose another mechanism, or fewer of them"
        )


def _values(
    registry: Registry[Any],
    create: Callable[[str, Mapping[str, Any]], object],
    name: str,
    options: Mapping[str, Any],
    table: Path,
    key: str,
) -> Iterator[Finding]:
    """Yield wrong names of options, else what a built-in says of their values, at the option that it names first."""
    places: dict[str, Path] = {option: (*table, "options", option) for option in options}
    problems = list(_names(registry, name, options, places, (*table, key)))
    yield from problems
    if problems or not registry.is_builtin(name):  # creating a plug-in's may do anything; a trial comes later
        return
    try:
        create(name, options)
    except InputError as error:
        reason = str(error).removeprefix(f"{registry.kind} {name!r}: ")
        yield Finding(places.get(reason.partition(" ")[0], (*table, key)), str(error))


def _names(
    registry: Registry[Any],
    name: str,
    options: Mapping[str, Any],
    places: Mapping[str, Path],  # of the options
    at: Path,  # of the name
    context: int = 0,  # arguments that flmarket gives before the options
) -> Iterator[Finding]:
    try:
        thing = registry.load(name)
    except InputError as error:  # a package that cannot be imported
        yield Finding(at, str(error))
        return
    for option, problem in option_problems(thing, options, context):
        yield Finding(places.get(option, at), f"{registry.kind} {name!r} {problem}")
