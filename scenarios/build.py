"""From a scenario and a seed to a market that is ready to run, and the policies that play it.

What changes in the middle of a run: the market imposes its conditions itself (``des.schedule``), but knows no policies.
So a runner seats a new one before the round that it begins in (``Seats``); who cannot follow refuses the scenario.
"""

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any, Self

import numpy as np

from des.behaviour import Behaviour
from des.clients.data_tables import Group, Lasting, PopulationSpec, Valuation
from des.clients.disclosure import CostNoise, Disclosure
from des.clients.mixture import Mixture
from des.clients.population import Population
from des.contracts import ContractTerms
from des.cost import Cost
from des.market import Market
from des.mechanism import MECHANISMS, Mechanism
from des.money import MICRO, to_micro
from des.response import Response, Terms
from des.schedule import Change, Conditions, Schedule
from des.service import ServiceSpec
from des.timeline import Durations
from fl.arrays import BoolArray, IntArray, read_only
from fl.backends import BACKENDS, Backend, FederationSpec, TaskSpec
from fl.data.dataset import short_digest
from fl.data.dqi import PRINTED, PUBLISHED, DQIParameters
from fl.data.embedded import DRAWN
from fl.data.registry import Dataset, DatasetError, data_root, info, is_path, load
from fl.surrogate.fitted import Fit, FitError, dqi_fit
from fl.surrogate.learning_curves import Curve
from fl.training.jobs import Conduct, Federation
from flmarket.core.errors import InputError, RunError
from learning.evaluation import Entrant, lineup
from learning.policy import POLICIES, Bounds, DataRanges, Policy, PolicyContext, agent_digest
from learning.seats import MarketFactory, bounds, ranges
from scenarios.file.checks import check_supply
from scenarios.file.client_files import Devices, availability_of, devices_of, digests_in, partitions_of, records
from scenarios.file.interventions import MECHANISM, at, new_players, service_of, services_over_time
from scenarios.file.problems import key_text
from scenarios.file.schema import Clients, Scenario, Service
from scenarios.stays import stays


class Shelf:
    """Loaded data sets, so that the runs of a batch read each of them once."""

    def __init__(self, loader: Callable[[str], Dataset] = load) -> None:
        self._loader = loader
        self._loaded: dict[str, Dataset] = {}

    def __deepcopy__(self, memo: object) -> Self:
        return self  # data sets are read-only

    def __reduce__(self) -> tuple[Any, ...]:
        return Shelf, (self._loader,)  # a pickle does not carry images

    def get(self, name: str) -> Dataset:
        """Return a data set, loading it the first time it is asked for."""
        if name not in self._loaded:
            self._loaded[name] = self._loader(name)
        return self._loaded[name]

    def known(self, name: str) -> Mapping[str, str]:
        """Return the digests of a data set's images. They are not drawn for that."""
        return DRAWN.get(name) or self.get(name).digests

    def digests(self, scenario: Scenario) -> dict[str, str]:
        """Return the SHA-256 of all that results depend on besides the scenario: data (or arrays), traces and fits.

        Raises:
            FitError: a fit was measured on other images than a data set has.
        """
        recorded, fits = recorded_of(scenario), fits_of(scenario)
        files = {f"{name}/{file}": digest for name in recorded for file, digest in sorted(self.known(name).items())}
        for fit in fits:  # a path, and a plug-in's name, may stand for other images elsewhere
            if (
                fit.dataset in recorded
                and fit.source.get("images", own := short_digest(self.known(fit.dataset))) != own
            ):
                raise FitError(
                    f"data set {fit.dataset!r}: its {fit.kind} fit was measured on other images; measure these with "
                    f"flmarket calibrate {fit.kind} SCENARIO, or rename the data set"
                )
        files |= digests_in(records(scenario))
        return files | {f"{fit.kind} fit/{fit.dataset}": fit.digest for fit in fits}


class Seats:
    """Seats the policies that begin in the middle of a run."""

    def __init__(
        self,
        scenario: Scenario,  # what is played
        market: Market,  # the run's
        policies: MutableMapping[str, Policy],  # those of the first round, by service; others take their places
        create: Callable[[Scenario, Service], Policy],  # creates each policy when its round comes
    ) -> None:
        self._scenario, self._market, self._policies, self._create = scenario, market, policies, create
        self._agents = agents_of(scenario)
        self._begins: dict[int, list[str]] = {}
        for _, change, _ in new_players(scenario):
            if (name := service_of(change.key)) is not None:
                self._begins.setdefault(change.round, []).append(name)

    def prepare(self, round_: int) -> None:
        """Seat the policies that begin in a round; the market is between rounds."""
        for name in self._begins.get(round_, ()):
            self._seat(name, round_)

    def resume(self, round_: int) -> None:
        """Seat those that play a round, in a market that has been built for the first one. As ``prepare``."""
        latest = {name: n for n in sorted(self._begins) if n <= round_ for name in self._begins[n]}
        for name, begun in latest.items():
            self._seat(name, begun)

    def _seat(self, name: str, round_: int) -> None:
        seat = f"agent/{name}@{round_}"
        if agents_of(self._scenario).get(seat) != self._agents.get(seat):
            raise RunError(f"{seat} is no longer what it was when the run began; leave agents as they are meanwhile")
        then = at(self._scenario, round_)
        service = then.service(name)
        try:
            self._policies[name] = self._create(then, service)
        except InputError as error:
            raise RunError(str(error)) from error  # it could be created when that was tried
        self._market.seat(name, service.policy, privileged=POLICIES.load(service.policy).privileged)


@dataclass(frozen=True)
class Setup:
    """All that one run needs. Close the federation when done."""

    market: Market  # at its start
    policies: dict[str, Policy]  # those of the first round, by service
    federation: Federation  # trains the models
    seats: Seats  # seats the policies that begin later


def backend_of(scenario: Scenario) -> Backend:
    """Return what stands behind the scenario's federation."""
    return BACKENDS[scenario.training.backend]


def datasets_of(scenario: Scenario) -> list[str]:
    """Return the names of the data sets that the scenario's services learn."""
    return sorted({service.dataset for service in scenario.services})


def images_of(scenario: Scenario) -> list[str]:
    """Return the names of the data sets whose images the scenario needs: none where nothing is trained."""
    return datasets_of(scenario) if backend_of(scenario).trains else []


def recorded_of(scenario: Scenario) -> list[str]:
    """Return the names of the data sets whose digests a run records.

    These are those whose images it needs, a user's own files, whose labels decide the bids in any case, and those that
    clients own, whose labels do, too.
    """
    return sorted({*images_of(scenario), *(it for it in datasets_of(scenario) if is_path(it) or scenario.data.given)})


def fits_of(scenario: Scenario) -> list[Fit]:
    names, backend = datasets_of(scenario), backend_of(scenario)
    fits = [dqi_fit(name) for name in names] if scenario.dqi == "fitted" else []
    regimes, outlasting = map(scenario.training_for, names), scenario.timeline.continuous
    return fits + [it for its in zip(names, regimes, strict=True) for it in backend.fits(*its, outlasting=outlasting)]


CreatePolicy = Callable[[Scenario, Service], Policy]  # creates the policy of one service


def build(
    scenario: Scenario, seed: int, shelf: Shelf, *, workers: int = 1, create: CreatePolicy | None = None
) -> Setup:
    """Return a market at its start, its federation and one policy for each service."""
    # Policies first: they fail fast, and training set-up is slow.
    create = create or build_policy
    policies = {service.name: create(scenario, service) for service in scenario.services}
    federation = build_federation(scenario, seed, shelf, workers=workers)
    market = build_market(scenario, seed, federation)
    return Setup(market, policies, federation, Seats(scenario, market, policies, create))


def build_policy(scenario: Scenario, service: Service) -> Policy:
    return create_policy(service, policy_context(scenario, service, known_curve(scenario, service)))


def create_policy(service: Service, context: PolicyContext) -> Policy:
    return POLICIES.create(service.policy, context, **policy_options(service))


def policy_context(scenario: Scenario, service: Service, curve: Curve | None) -> PolicyContext:
    """Return what the policy of one service of the scenario knows before the first round; see ``known_curve``."""
    return PolicyContext(
        service=service.name,
        services=len(scenario.services),
        clients=scenario.clients.count,
        cores=scenario.clients.cores,
        rounds=scenario.rounds,
        budget=service.budget,
        target_accuracy=service.target_accuracy,
        reward_base=service.reward_base,
        curve=curve,
        bounds=partial(observed_bounds, scenario, service.name),
        ranges=partial(data_ranges, scenario, service.dataset),
        dqi=dqi_parameters(scenario.dqi, service.dataset) if scenario.market.data == "public" else None,
    )


def data_ranges(scenario: Scenario, dataset: str) -> DataRanges:
    """Return the public ranges of what clients' data can cost, and be worth to a service that learns a data set."""
    return ranges(population_spec(scenario), info(dataset).labels, dqi_parameters(scenario.dqi, dataset))


def bid_range(scenario: Scenario) -> tuple[float, float]:
    """Return the lowest and the highest bid to any service; money."""
    people, labels = population_spec(scenario), [info(service.dataset).labels for service in scenario.services]
    costs = Valuation(people, labels, [PUBLISHED] * len(labels)).ranges().cost
    low, high = people.behaviour.bid_range(*CostNoise(people.cost_noise, people.count, seed=0).limits(*costs))
    return float(low.min()) / MICRO, float(high.max()) / MICRO


def observed_bounds(scenario: Scenario, service: str) -> Bounds:
    """Return the bounds of what a service observes in a scenario's market, without making the market."""
    specs = [service_spec(scenario, it) for it in scenario.services]
    place = [it.name for it in specs].index(service)
    return bounds(population_of(scenario, seed=0), schedule_of(scenario, seed=0), specs, place)


def policy_options(service: Service) -> dict[str, Any]:
    """Return the keyword arguments of a service's policy: its ``policy_options``, and its checkpoint if it has one."""
    options = dict(service.policy_options)
    if service.checkpoint is not None:
        options["checkpoint"] = service.checkpoint
    return options


def agents_of(scenario: Scenario) -> dict[str, str]:
    """Return the SHA-256 of every learned agent that the scenario's services play, by service.

    One that begins later is that of ``mnist@30``, say, after the round.
    """
    return {
        f"agent/{seat}": digest
        for seat, service in services_over_time(scenario)
        if (digest := agent_digest(service.policy, service.checkpoint)) is not None
    }


def inputs_of(scenario: Scenario, shelf: Shelf) -> dict[str, str]:
    """Return the digests of all files that results depend on: those of ``Shelf.digests``, and learned agents."""
    return shelf.digests(scenario) | agents_of(scenario)


def build_federation(scenario: Scenario, seed: int, shelf: Shelf, *, workers: int = 1) -> Federation:
    """Return the federation that trains the scenario's services, or stands in for it."""
    return backend_of(scenario).federation(_federation_spec(scenario, seed, shelf, workers))


def kernels_of(scenario: Scenario, shelf: Shelf) -> Mapping[str, str]:
    """Return which code would train each service's models on this machine's CPU; empty where none are trained.

    Errors as in ``build_federation``.
    """
    return backend_of(scenario).kernels(_federation_spec(scenario, 0, shelf, 1))


def require_federation(scenario: Scenario, shelf: Shelf) -> None:
    """Check what can be checked of a scenario's federation without creating it. Errors as in ``build_federation``."""
    backend_of(scenario).require(_federation_spec(scenario, 0, shelf, 1))


def _federation_spec(scenario: Scenario, seed: int, shelf: Shelf, workers: int) -> FederationSpec:
    for name in images_of(scenario):
        # The scenario was checked against the official data set; this machine's copy may have fewer images.
        for finding in check_supply(scenario, name, shelf.get(name).info):
            key = key_text(finding.path, {})
            raise DatasetError(
                f"data set {name!r}: the files in {data_root()}: {finding.message}; put the official files there, or "
                f"change {key}"
            )
    training = scenario.training
    return FederationSpec(
        tasks=[TaskSpec(it.name, it.dataset, scenario.training_for(it.dataset)) for it in scenario.services],
        seed=seed,
        load=shelf.get,
        eval_samples=training.eval_samples,
        validation=training.validation,
        workers=workers,
        kernel=training.kernel,
        device=training.device,
        aggregator=training.aggregation.plugin().create,
    )


def build_market(
    scenario: Scenario,
    seed: int,
    federation: Federation,
    mechanism: Mechanism | None = None,  # in place of the scenario's
    behaviour: Behaviour | None = None,  # of the clients, in place of the scenario's
) -> Market:
    """Return the scenario's market at its start, over a federation."""
    specs = services_of(scenario, seed)
    mechanism = mechanism or MECHANISMS.create(scenario.market.mechanism, **scenario.market.options)
    clients, clock, schedule = population_spec(scenario, behaviour), timeline(scenario), schedule_of(scenario, seed)
    parts = clients, specs, clock, scenario.rounds, federation, seed, schedule, mechanism, contract_terms(scenario)
    triggers = [it.create() for it in scenario.triggers()]
    return Market(*parts, sequential=scenario.market.sequential, triggers=triggers)


def contract_terms(scenario: Scenario) -> ContractTerms:
    """Return the terms on which the services of a scenario hire."""
    return ContractTerms(scenario.market.contract_rounds, scenario.market.cancel_fee)


def population_of(
    scenario: Scenario,
    seed: int,
    labels: Mapping[str, int] | None = None,  # L by data set; of others, what they have now
) -> Population:
    """Return the clients of the scenario's market under a seed, without the market."""
    given, services = labels or {}, scenario.services
    counts = [given.get(service.dataset) or info(service.dataset).labels for service in services]
    parameters = [dqi_parameters(scenario.dqi, service.dataset) for service in services]
    return Population(population_spec(scenario), counts, parameters, seed)


def schedule_of(scenario: Scenario, seed: int) -> Schedule:
    """Return what each round of the scenario's market is played under."""
    budgets = {service.name: to_micro(service.budget) for service in scenario.services}
    clients = scenario.clients
    first = Conditions(budgets, clients.cores, availability=availability_of(scenario, seed), cores_of=cores_of(clients))
    return Schedule(first, tuple(_interventions(scenario)))


def _interventions(scenario: Scenario) -> Iterator[Change]:
    for entry in scenario.interventions:
        match entry.key.split("."):
            case ["clients", "cores"]:
                clients = scenario.clients.model_copy(update={"cores": entry.value})
                yield Change(entry.round, cores=entry.value, cores_of=cores_of(clients))
            case ["clients", "offline"]:
                yield Change(entry.round, offline=frozenset(entry.value))
            case ["services", *name, "budget"]:
                yield Change(entry.round, budgets={".".join(name): to_micro(entry.value)})
    for _, change, later in new_players(scenario):
        if change.key == MECHANISM:
            yield Change(change.round, rules=(later.market.mechanism, later.market.options))


def services_of(scenario: Scenario, seed: int) -> list[ServiceSpec]:
    """Return the services of the scenario's market under a seed: when they come and go is drawn, where they stream."""
    if not scenario.streams and all(service.patience is None for service in scenario.services):
        return [service_spec(scenario, service) for service in scenario.services]
    slot = to_micro(scenario.timeline.slot or 0)
    return [
        replace(service_spec(scenario, service), arrival=it.first, came=1 + it.came / slot, last=it.last)
        for service, it in zip(scenario.services, stays(scenario, seed), strict=True)
    ]


def service_spec(scenario: Scenario, service: Service) -> ServiceSpec:
    return ServiceSpec(
        name=service.name,
        dataset=service.dataset,
        labels=info(service.dataset).labels,
        dqi=dqi_parameters(scenario.dqi, service.dataset),
        budget=to_micro(service.budget),
        target_accuracy=service.target_accuracy,
        reward_base=service.reward_base,
        local_epochs=scenario.training_for(service.dataset).local_epochs,
        policy=service.policy,
        privileged=POLICIES.load(service.policy).privileged,
        arrival=service.arrival,
        total_budget=None if service.total_budget is None else to_micro(service.total_budget),
        budget_cap=None if service.budget_cap is None else to_micro(service.budget_cap),
        model_bytes=scenario.model_bytes(service) or 0,
        curve=known_curve(scenario, service),
    )


def known_curve(scenario: Scenario, service: Service) -> Curve | None:
    """Return how a service's data set is learned, as far as that is known before the first round."""
    return backend_of(scenario).known(service.dataset, scenario.training_for(service.dataset))


def population_spec(
    scenario: Scenario,
    behaviour: Behaviour | None = None,
    cost: Cost | None = None,
    response: Response | None = None,
) -> PopulationSpec:
    """Return the clients as the market knows them; behaviour, cost and response, if given, replace the scenario's."""
    clients, market, owned = scenario.clients, scenario.market, partitions_of(scenario)
    partitions = None if owned is None else tuple(owned[service.dataset] for service in scenario.services)
    devices = devices_of(scenario)
    sizes = clients.data_size or sorted({size for it in partitions or () for size in it.sizes if size})
    return PopulationSpec(
        clients.cores,
        tuple(
            _group(it, sizes, cost, None if place is None else clients.groups[place].conduct, devices)
            for place, it in clients.kinds()
        ),
        behaviour=behaviour or _behaviour(clients),
        lasting=Lasting(**clients.lasting.model_dump()),
        cost_noise=clients.cost.noise,
        disclosure=Disclosure(market.bids == "public", market.dqi == "rank", market.dqi_noise, market.data == "public"),
        partitions=partitions,
        everything=not clients.data_size,
        devices=devices is not None,
        serves=eligibility(scenario),
        response=_response_terms(clients, response),
    )


def _response_terms(clients: Clients, response: Response | None) -> Terms | None:
    """Return the terms on which clients answer awards; None where they do all of the work."""
    own = clients.response
    terms = (Terms(response or it.create(), own.of, own.epsilon, own.delta, own.clip) for it in clients.answer())
    return next(terms, None)


def eligibility(scenario: Scenario) -> BoolArray | None:
    """Return which services each client can serve, [M, C]; None if all can serve all."""
    groups = scenario.clients.groups
    if all(group.services is None for group in groups):
        return None
    serves = np.ones((len(scenario.services), scenario.clients.count), dtype=np.bool_)
    ends = accumulate(group.count for group in groups)
    for group, end in zip(groups, ends, strict=True):
        if group.services is not None:
            able = np.isin([service.name for service in scenario.services], scenario.named(group.services))
            serves[:, end - group.count : end] = able[:, None]
    return read_only(serves)


def cores_of(clients: Clients) -> IntArray | None:
    """Return how many services each client can serve at once, [C]; None if all can serve K.

    That is its group's number, but never more than K, which interventions change.
    """
    if all(group.cores is None for group in clients.groups):
        return None
    kinds = [it for _, it in clients.kinds()]
    each = np.repeat([min(it.cores, clients.cores) for it in kinds], [it.count for it in kinds])
    return read_only(each) if (each < clients.cores).any() else None


def _behaviour(clients: Clients) -> Behaviour:
    """Return a new object for each behaviour in use, as one where there are several."""
    named = clients.behaviours()
    if clients.bids_costs:  # whoever does, alike
        named = named[:1] * len(named)
    made = {it.table: it.create() for it in named}
    members: list[Behaviour] = [made[it.table] for it in named]
    return members[0] if len(made) == 1 else Mixture(members, [it.count for _, it in clients.kinds()])


def _group(
    clients: Clients, sizes: Sequence[int], cost: Cost | None, conduct: Conduct | None, devices: Devices | None
) -> Group:
    own = clients.speed, clients.download_mbps, clients.upload_mbps
    speed, download, upload = own if devices is None else devices[:3]
    return Group(
        clients.count,
        tuple(clients.data_size or sizes),
        clients.emd,
        cost or clients.cost.plugin().create(),
        speed,
        clients.departure_rate,
        clients.cost.unit.distribution(),
        clients.label_mix.dirichlet,
        conduct,
        download,
        upload,
    )


def timeline(scenario: Scenario) -> Durations:
    clock = scenario.timeline
    keys = "seconds_per_sample", "upload_seconds", "deadline", "download_seconds", "jitter", "period", "decide", "slots"
    return Durations(slot=clock.end, **{key: getattr(clock, key) for key in keys})


def dqi_parameters(which: str, dataset: str) -> DQIParameters:
    """Return the parameters of eq. (6) for a scenario's ``dqi`` and one data set."""
    return PRINTED[which] if which in PRINTED else DQIParameters(**dqi_fit(dataset).parameters)


def require_no_new_players(scenario: Scenario, who: str) -> None:
    """Refuse a scenario in which a policy or the mechanism changes in the middle of a run."""
    for _, change, _ in new_players(scenario):
        raise InputError(
            f"{who} cannot follow a change of {change.key} in round {change.round}; remove it from [[interventions]]"
        )


def require_one_point(scenario: Scenario, who: str, instead: str) -> None:
    """Refuse a scenario that stands for several markets."""
    if scenario.sweep or scenario.runs:
        keys = ", ".join(scenario.sweep or scenario.runs[0])
        raise InputError(f"{who} one market, but scenario {scenario.name!r} varies {keys}; {instead}")


def market_factory(
    scenario: Scenario,  # without a sweep
    shelf: Shelf | None = None,  # gives the data sets, which all markets share
    *,
    workers: int = 1,  # training threads of each market; results do not depend on it
) -> MarketFactory:
    """Return what makes the scenario's market from a seed. Close each market when done with it."""
    require_no_new_players(scenario, "an environment")
    require_one_point(scenario, "an environment plays", 'load it with {"sweep": {}, "runs": []} and a value for each')
    return partial(_market, scenario, shelf or Shelf(), workers)


def _market(scenario: Scenario, shelf: Shelf, workers: int, seed: int) -> Market:
    return build_market(scenario, seed, build_federation(scenario, seed, shelf, workers=workers))


def entrant(services: Sequence[Service]) -> Entrant:
    """Return the entrant whose services play the policies that they name."""
    return lineup({it.name: it.policy for it in services}, {it.name: policy_options(it) for it in services})
