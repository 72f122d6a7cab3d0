"""From a scenario and a seed to a market that is ready to run, and the policies that play it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

from des.client import Timeline
from des.market import Market
from des.money import to_micro
from des.population import PopulationSpec
from des.service import ServiceSpec
from fl.datasets import Dataset, DatasetError, data_root, info, load
from fl.federation import RealFederation, Task
from fl.local import TrainingSettings
from fl.partition import largest_count
from fl.quality import PUBLISHED, DQIParameters
from learning.policy import Policy, PolicyContext, create
from learning.policy import load as load_policy
from scenarios.schema import Scenario, Service


class Shelf:
    """Loaded data sets, so that the runs of a batch read each of them once."""

    def __init__(self, loader: Callable[[str], Dataset] = load) -> None:
        self._loader = loader
        self._loaded: dict[str, Dataset] = {}

    def get(self, name: str) -> Dataset:
        """Return a data set, loading it the first time it is asked for.

        Raises:
            DatasetError: it is missing or corrupt; says what to do.
        """
        if name not in self._loaded:
            self._loaded[name] = self._loader(name)
        return self._loaded[name]

    def digests(self, scenario: Scenario) -> dict[str, str]:
        """Return the SHA-256 of every file (or generated array) that the scenario's data sets come from."""
        return {
            f"{name}/{file}": digest
            for name in sorted({service.dataset for service in scenario.services})
            for file, digest in sorted(self.get(name).digests.items())
        }


@dataclass(frozen=True)
class Setup:
    """All that one run needs. Close the federation when done."""

    market: Market
    policies: dict[str, Policy]
    federation: RealFederation


def build(scenario: Scenario, seed: int, shelf: Shelf, *, workers: int = 1) -> Setup:
    """Return a market at its start, its federation and one policy for each service.

    Args:
        scenario: without a sweep.
        seed: of the run.
        shelf: gives the data sets.
        workers: training threads; results do not depend on it.

    Raises:
        DatasetError: a data set is missing or corrupt.
        PolicyOptionsError: a policy does not take its ``policy_options``.
    """
    # Policies first: they fail fast, and training set-up is slow.
    policies = {service.name: build_policy(scenario, service) for service in scenario.services}
    federation = build_federation(scenario, seed, shelf, workers=workers)
    return Setup(build_market(scenario, seed, federation), policies, federation)


def build_policy(scenario: Scenario, service: Service) -> Policy:
    """Return a new policy for one service of the scenario."""
    context = PolicyContext(
        service=service.name,
        services=len(scenario.services),
        clients=scenario.clients.count,
        cores=scenario.clients.cores,
        rounds=scenario.rounds,
        budget=service.budget,
        target_accuracy=service.target_accuracy,
        reward_base=service.reward_base,
    )
    return create(service.policy, context, service.policy_options)


def build_federation(scenario: Scenario, seed: int, shelf: Shelf, *, workers: int = 1) -> RealFederation:
    """Return the federation that trains the scenario's services.

    Raises:
        DatasetError: a data set is missing, corrupt, or smaller than the official one and can't supply the clients.
        KernelError: the kernel or device that the scenario asks for can't be used here.
    """
    tasks = [
        Task(service.name, shelf.get(service.dataset), training_settings(scenario, service.dataset))
        for service in scenario.services
    ]
    for task in tasks:
        _check_supply(scenario, task.dataset)
    training = scenario.training
    return RealFederation(tasks, seed, workers=workers, kernel=training.kernel, device=training.device)


def _check_supply(scenario: Scenario, dataset: Dataset) -> None:
    """Refuse a data set that has too few images of a label; the scenario was checked against the official one."""
    found = dataset.info
    for size, emd in product(scenario.clients.data_size, scenario.clients.emd):
        needed = largest_count(size, emd, found.labels)
        if needed > found.rarest_label:
            raise DatasetError(
                f"data set {found.name!r}: the files in {data_root()} have {found.rarest_label} images of their rarest "
                f"label; a client with {size} images of EMD {emd} can need {needed}; put the official files there, or "
                "lower clients.data_size or clients.emd"
            )


def build_market(scenario: Scenario, seed: int, federation: RealFederation) -> Market:
    """Return the scenario's market at its start, over a federation."""
    clients, timeline = scenario.clients, scenario.timeline
    services = [
        ServiceSpec(
            name=service.name,
            dataset=service.dataset,
            labels=info(service.dataset).labels,
            dqi=dqi_parameters(scenario.dqi),
            budget=to_micro(service.budget),
            target_accuracy=service.target_accuracy,
            reward_base=service.reward_base,
            local_epochs=scenario.training_for(service.dataset).local_epochs,
            policy=service.policy,
            privileged=load_policy(service.policy).privileged,
        )
        for service in scenario.services
    ]
    population = PopulationSpec(
        count=clients.count,
        cores=clients.cores,
        data_sizes=tuple(clients.data_size),
        emds=tuple(clients.emd),
        cost_per_sample=clients.cost.per_sample,
        cost_per_emd=clients.cost.per_emd,
        speeds=tuple(clients.speed),
        departure_rate=clients.departure_rate,
    )
    slots = Timeline(timeline.seconds_per_sample, timeline.upload_seconds, timeline.slot, timeline.deadline)
    return Market(population, services, slots, scenario.rounds, federation, seed)


def training_settings(scenario: Scenario, dataset: str) -> TrainingSettings:
    """Return how clients train for one data set."""
    chosen = scenario.training_for(dataset)
    return TrainingSettings(
        model=chosen.model,
        local_epochs=chosen.local_epochs,
        batch_size=chosen.batch_size,
        learning_rate=chosen.learning_rate,
        momentum=chosen.momentum,
        eval_samples=scenario.training.eval_samples,
    )


def dqi_parameters(which: str) -> DQIParameters:
    """Return the parameters of eq. (6) for a scenario's ``dqi``.

    There are no own fits yet; ``fitted`` is the published set with the sign of eta1 turned, so that DQI rises with the
    data size as the paper's text has it. ``flmarket run`` says so.
    """
    return PUBLISHED if which == "published" else replace(PUBLISHED, eta1=abs(PUBLISHED.eta1))
