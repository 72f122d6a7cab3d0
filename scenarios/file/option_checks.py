"""Whether plug-ins (policies, the mechanism, the clients' behaviour) take the options that a scenario gives them.

Only names are checked here, and the values of built-in mechanisms and behaviours; creating the others checks their
values.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from des.behaviour import BEHAVIOURS, TRUTHFUL
from des.behaviour import create as create_behaviour
from des.mechanism import DEFAULT, MECHANISMS
from des.mechanism import create as create_mechanism
from fl.errors import InputError
from fl.options import option_problems
from fl.plugins import Registry
from learning.policy import POLICIES
from scenarios.file.problems import Finding, Path
from scenarios.file.readable import Readable


def mechanism_options(readable: Readable, known: Collection[str]) -> Iterator[Finding]:
    """Yield options of the mechanism that do not exist, or that it lacks; its name is checked elsewhere."""
    name = readable.get("market", "mechanism") if "mechanism" in readable.keys("market") else DEFAULT
    given: dict[Path, tuple[str, Any]] = {
        ("market", "options", key): (key, value) for key, value in _table(readable, "market", "options")
    }
    if name in known and (given or name != DEFAULT):
        if not _is_broken(readable, "market", "options"):
            yield from _check_values(MECHANISMS, create_mechanism, name, given, ("market", "mechanism"))
        yield from too_large(readable, name, ("market", "mechanism"))


def behaviour_options(readable: Readable, known: Collection[str]) -> Iterator[Finding]:
    """Yield options of the clients' behaviour that do not exist, or that it lacks; its name is checked elsewhere."""
    table = ("clients", "behaviour")
    name = readable.get(*table, "kind") if "kind" in readable.keys(*table) else TRUTHFUL
    given: dict[Path, tuple[str, Any]] = {
        (*table, "options", key): (key, value) for key, value in _table(readable, *table, "options")
    }
    if name in known and (given or name != TRUTHFUL) and not _is_broken(readable, *table, "options"):
        yield from _check_values(BEHAVIOURS, create_behaviour, name, given, (*table, "kind"))


def _check_values(
    registry: Registry[Any],
    create: Callable[[str, Mapping[str, Any]], object],
    name: str,
    given: Mapping[Path, tuple[str, Any]],
    at: Path,
) -> Iterator[Finding]:
    """Yield wrong names of options, else what a built-in says of their values, at the option that it names first."""
    problems = list(_check(registry, name, given, at))
    yield from problems
    if problems or not registry.is_builtin(name):  # creating a plug-in's may do anything; a trial comes later
        return
    try:
        create(name, dict(given.values()))
    except InputError as error:
        reason = str(error).removeprefix(f"{registry.kind} {name!r}: ")
        places = {key: path for path, (key, _) in given.items()}
        yield Finding(places.get(reason.partition(" ")[0], at), str(error))


def too_large(readable: Readable, name: str, at: Path) -> Iterator[Finding]:
    """Yield whether the market has more services and clients than the mechanism can clear."""
    largest = getattr(MECHANISMS.load(name), "largest", None)
    services, clients = len(list(readable.places("services"))), readable.get("clients", "count")
    if largest is not None and isinstance(clients, int) and services * clients > largest:
        yield Finding(
            at,
            f"{name!r} clears markets of at most {largest:,} pairs of a service and a client; this one has "
            f"{services} x {clients:,}; choose another mechanism, or fewer of them",
        )


def policy_options(readable: Readable, known: Collection[str]) -> Iterator[Finding]:
    """Yield options and checkpoints that the services' own policies do not take, and options that they lack.

    Not part of reading a scenario: an option may be meant for the policy that ``--policy`` puts in the place of these.
    Only what has options is loaded, because some policies bring torch.
    """
    for i in readable.places("services"):
        at: Path = ("services", i)
        name, checkpoint = readable.get(*at, "policy"), readable.get(*at, "checkpoint")
        given: dict[Path, tuple[str, Any]] = {
            (*at, "policy_options", key): (key, value) for key, value in _table(readable, *at, "policy_options")
        }
        if checkpoint is not None:
            given[*at, "checkpoint"] = "checkpoint", checkpoint
        if given and name in known:
            yield from _check(POLICIES, name, given, (*at, "policy"), context=1)


def _check(
    registry: Registry[Any], name: str, given: Mapping[Path, tuple[str, Any]], at: Path, context: int = 0
) -> Iterator[Finding]:
    try:
        thing = registry.load(name)
    except InputError as error:  # a package that cannot be imported
        yield Finding(at, str(error))
        return
    places = {key: path for path, (key, _) in given.items()}
    for key, problem in option_problems(thing, dict(given.values()), context):
        yield Finding(places.get(key, at), f"{registry.kind} {name!r} {problem}")


def _is_broken(readable: Readable, *path: str | int) -> bool:
    """Whether a table is there, but something in it is not fine: then it is not known which options are given."""
    return path[-1] in readable.keys(*path[:-1]) and readable.get(*path) is None


def _table(readable: Readable, *path: str | int) -> list[tuple[str, Any]]:
    found = readable.get(*path)
    return list(found.items()) if isinstance(found, Mapping) else []
