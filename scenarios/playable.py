"""Whether a scenario can be played: whether what it names can be created as it asks, and its data are there.

Loading a scenario checks names alone, which is quick. This is what a run does first; it is tried before a batch starts,
so that no run is played in vain, and by ``flmarket validate``: both accept the same scenarios.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from des.behaviour import BEHAVIOURS
from des.mechanism import MECHANISMS, Mechanism
from fl.data.downloaded import AbsentError
from fl.data.registry import info
from fl.training.models import MODELS, require_fit
from fl.training.trainers import traits_of
from flmarket.core.errors import InputError
from scenarios.build import (
    CreatePolicy,
    Shelf,
    agents_of,
    bid_range,
    build_policy,
    images_of,
    require_federation,
)
from scenarios.file.checks import Catalogue, installed
from scenarios.file.interventions import new_players, service_of
from scenarios.file.problems import Mistake, Path
from scenarios.file.schema import Scenario, Service


def validation(shelf: Shelf) -> Catalogue:
    """Return what ``flmarket validate``, and the form, check a scenario by when they load it."""
    return replace(installed(), own_policies=True, obstacles=partial(obstacles, shelf))


def obstacles(shelf: Shelf, scenario: Scenario, create: CreatePolicy = build_policy) -> Iterator[Mistake]:
    """Yield what cannot be created as the scenario asks. Data sets that are not here yet are none; see ``absent``."""
    said: set[str] = set()  # what creates several parts fails with each
    for path, attempt in _parts(scenario, shelf, create):
        try:
            attempt()
        except AbsentError:
            pass
        except InputError as error:
            if str(error) not in said:
                yield Mistake(path, str(error))
            said.add(str(error))


def unreadable_agents(scenario: Scenario) -> Iterator[Mistake]:
    """Yield the checkpoints of services that cannot be read. Nothing is created."""
    for i, service in enumerate(scenario.services):
        try:
            _read_agent(scenario, service)
        except InputError as error:
            yield Mistake(("services", i, "checkpoint"), str(error))


def absent(scenario: Scenario, shelf: Shelf) -> list[str]:
    """Return the names of the data sets that a run downloads first."""
    return [name for name in images_of(scenario) if not _is_here(name, shelf)]


def remarks(scenarios: Sequence[Scenario], shelf: Shelf) -> Iterator[str]:
    """Yield in words what is said of valid scenarios: what is hardly meant, and which data sets are not here yet."""
    yield from dict.fromkeys(text for scenario in scenarios for text in oddities(scenario))
    for name in dict.fromkeys(name for scenario in scenarios for name in absent(scenario, shelf)):
        yield f"data set {name!r} is not here; flmarket run downloads it first"


def oddities(scenario: Scenario) -> Iterator[str]:
    """Yield in words what can be played and is hardly meant."""
    yield from _unaffordable(scenario)
    yield from _unused_menu(scenario)


def _unaffordable(scenario: Scenario) -> Iterator[str]:
    """Yield that no service can ever buy a client."""
    # what a plug-in's clients ask is up to it
    if not all(BEHAVIOURS.is_builtin(it.name) for it in scenario.clients.behaviours()):
        return
    budgets = [service.budget for service in scenario.services]
    budgets += [change.value for change in scenario.interventions if change.key.endswith(".budget")]
    if max(budgets) < (least := bid_range(scenario)[0]):
        owned = scenario.data.given and not scenario.clients.data_size
        yield (
            f"{scenario.name}: no service can buy a client: none asks less than {least:.2f}, and the largest budget is "
            f"{max(budgets):g}" + "; clients.data_size lets them train on fewer of their images in a round" * owned
        )


def _unused_menu(scenario: Scenario) -> Iterator[str]:
    """Yield that a mechanism posts a menu to clients who do not choose."""
    name = scenario.market.mechanism
    if not scenario.clients.responds and MECHANISMS.load(name).menu is not Mechanism.menu:
        yield (
            f"{scenario.name}: mechanism {name!r} posts a menu, from which only clients that respond choose; without "
            "clients.response, they do all of the work at the price of the clearing"
        )


def require_playable(scenario: Scenario, shelf: Shelf, create: CreatePolicy = build_policy) -> None:
    """Raise the first error that creating the scenario's parts would raise in a run."""
    for _, attempt in _parts(scenario, shelf, create):
        attempt()


def _parts(scenario: Scenario, shelf: Shelf, create: CreatePolicy) -> Iterator[tuple[Path, Callable[[], object]]]:
    """Yield what a run creates: the key that is at fault if that fails, and a function that creates it."""
    for plugin in scenario.plugins():
        yield (*plugin.table, "options" if plugin.options else plugin.key), plugin.create
    for i, service in enumerate(scenario.services):
        key = "policy_options" if service.policy_options else "checkpoint" if service.checkpoint else "policy"
        yield ("services", i, key), partial(_create_policy, scenario, service, create)
    for i, change, later in new_players(scenario):
        if (name := service_of(change.key)) is not None:
            yield ("interventions", i, "value"), partial(_create_policy, later, later.service(name), create)
        else:
            rules = later.market
            yield ("interventions", i, "value"), partial(MECHANISMS.create, rules.mechanism, **rules.options)
    names = images_of(scenario)
    for name in names:
        i = next(i for i, service in enumerate(scenario.services) if service.dataset == name)
        yield ("services", i, "dataset"), partial(shelf.get, name)
    for name in names:
        model = scenario.training_for(name).model
        if not MODELS.is_builtin(model):
            yield ("training", "model"), partial(_try_model, scenario, name)
        elif _is_here(name, shelf):
            yield ("training", "model"), partial(require_fit, model, shelf.get(name).info.shape)
    if all(_is_here(name, shelf) for name in names):
        yield ("training",), partial(require_federation, scenario, shelf)


def _create_policy(scenario: Scenario, service: Service, create: CreatePolicy) -> None:
    create(scenario, service)
    _read_agent(scenario, service)


def _read_agent(scenario: Scenario, service: Service) -> None:
    agents_of(scenario.model_copy(update={"services": (service,), "interventions": ()}))


def _is_here(name: str, shelf: Shelf) -> bool:
    """Return whether a data set can be read here; why not is reported where it is read."""
    try:
        shelf.get(name)
    except InputError:
        return False
    return True


def _try_model(scenario: Scenario, dataset: str) -> None:
    first = next(it.name for it in scenario.services if it.dataset == dataset)
    traits_of(scenario.training_for(dataset), info(dataset), first)
