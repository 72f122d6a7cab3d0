"""Checks of a scenario: each key by the schema, then what involves several keys, or what is installed."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pydantic import ValidationError

from des.behaviour import Behaviour
from des.cost import COSTS, LARGEST_COST, LINEAR, amounts_at_ends
from des.mechanism import MECHANISMS, Mechanism
from des.money import to_micro
from fl.backends import BACKENDS
from fl.data.dataset import DatasetInfo
from fl.data.emd import largest_count, largest_emd, realised_emd
from fl.data.own_files import is_path
from fl.data.registry import DATASETS, info
from fl.data.validation_split import held_out, left_at_least
from fl.surrogate.fitted import FitError, dqi_fit
from fl.training.aggregator import FEDAVG
from flmarket.core.errors import InputError
from flmarket.core.names import LONGEST_NAME, unknown
from flmarket.core.plugins import Registry
from flmarket.core.text import counted
from learning.policy import POLICIES
from scenarios.file.client_files import devices_of, horizon, partition_of, partitions_of, trace_of, without_images
from scenarios.file.interventions import MECHANISM, check_interventions, new_players
from scenarios.file.key_mistakes import findings
from scenarios.file.problems import Mistake, Path, number, quoted
from scenarios.file.schema import (
    DATASET,
    MOST_SERVICES,
    REGISTRIES,
    Aggregate,
    ClientCost,
    ClientGroup,
    ClientPresence,
    ClientResponse,
    Clients,
    CostUnit,
    Scenario,
    Service,
)

LARGEST_MARKET = 10_000_000  # clients times services: every array of a round has this many numbers


_OF_DEVICES = "speed", "download_mbps", "upload_mbps"
_PLAIN = {key: Clients.model_fields[key].default for key in _OF_DEVICES}


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The names that a scenario may use."""

    names: Mapping[str, Collection[str]]  # by kind of plug-in; a data set may be the path of a user's own files, too
    facts: Callable[[str], DatasetInfo]  # returns what is known of a data set, by name
    fits: bool = False  # whether the fits that it needs must be there; calibration, which makes them, does without
    # whether the scenario is that of a run that was played before; plug-ins that it names need not be here
    played: bool = False
    own_policies: bool = False  # whether the policies that it names play, whose options are then checked as well
    # yields what cannot be created as a scenario asks, if that is to be tried (``scenarios.playable``)
    obstacles: Callable[[Scenario], Iterator[Mistake]] | None = None


def installed(*, fits: bool = True) -> Catalogue:
    """Return what a scenario may name in this installation. ``fits`` as in ``Catalogue``."""
    return Catalogue({registry.kind: registry.names() for registry in REGISTRIES}, info, fits=fits)


def played() -> Catalogue:
    """Return what the scenario of a run that was played before may name: anything. Nothing is to be played again.

    Of data sets, those that come with flmarket alone are looked at: a user's own may be gone, or others by now.
    """
    known = installed(fits=False)
    return replace(known, names={**known.names, DATASET: DATASETS.builtin}, played=True)


def examine(
    data: Mapping[str, Any],  # as ``tomllib`` reads it, with a flat ``sweep``; its values are not examined
    catalogue: Catalogue,
) -> tuple[Scenario | None, list[Mistake]]:
    """Return the scenario, or None and what is wrong: with its keys, or, if each is fine by itself, across keys."""
    try:
        scenario = Scenario.model_validate(data, context=None if catalogue.played else catalogue.names)
    except ValidationError as error:
        return None, findings(error)
    found = [*_check(scenario, catalogue)]
    if not found and catalogue.obstacles:
        found = [*catalogue.obstacles(scenario)]
    if scenario.streams:  # what is wrong with all services of one is said once
        found = [replace(it, path=scenario.table_of(it.path), see=it.see and scenario.table_of(it.see)) for it in found]
        found = list(dict.fromkeys(found))
    return (None if found else scenario), found


def _check(scenario: Scenario, catalogue: Catalogue) -> Iterator[Mistake]:
    yield from _unique_names(scenario)
    yield from _times(scenario)
    yield from _bandwidths(scenario)
    yield from _streams(scenario)
    yield from _budget_caps(scenario)
    yield from _continuous(scenario)
    yield from _presence(scenario, played=catalogue.played)
    yield from _market_size(scenario)
    yield from _aggregation(scenario)
    yield from _conduct(scenario)
    yield from _response(scenario)
    if catalogue.own_policies:
        yield from _policy_options(scenario)
    if catalogue.played:
        yield from check_interventions(scenario, None)
    else:
        rules = [*_options(scenario), *check_interventions(scenario, catalogue.names)]
        yield from rules or _not_cleared(scenario)
        try:
            devices_of(scenario)
        except InputError as error:
            yield Mistake(("clients", "devices"), str(error))
    used: dict[str, DatasetInfo] = {}
    for i, service in enumerate(scenario.services):
        name = service.dataset
        known = name in catalogue.names[DATASET] or (is_path(name) and not catalogue.played)
        if known and name not in used:
            try:
                used[name] = catalogue.facts(name)
            except InputError as error:  # of a plug-in or files, which are loaded for them
                yield Mistake(("services", i, "dataset"), str(error))
    yield from _evaluation(scenario, used)
    yield from _data(scenario, used, played=catalogue.played)
    if catalogue.fits:
        yield from _fits(scenario, used)


def _unique_names(scenario: Scenario) -> Iterator[Mistake]:
    tables: list[tuple[str, Path, Sequence[Service | ClientGroup]]] = [
        ("service", ("services",), scenario.services),
        ("group", ("clients", "groups"), scenario.clients.groups),
    ]
    for kind, at, found in tables:
        first: dict[str, Path] = {}
        said: set[Path] = set()
        for i, table in enumerate(found):
            path = scenario.table_of((*at, i, "name"))
            if first.setdefault(table.name, path) != path and path not in said:
                said.add(path)
                yield Mistake(path, f"is also the name of another {kind}: {quoted(table.name)}", see=first[table.name])


def _times(scenario: Scenario) -> Iterator[Mistake]:
    slot, deadline = scenario.timeline.end, scenario.timeline.deadline
    if slot is not None and deadline is not None and deadline > slot:
        yield Mistake(
            ("timeline", "deadline"), f"must be at most the slot of {number(slot)} seconds, not {number(deadline)}"
        )
    for i, service in enumerate(scenario.services):
        if service.arrival > scenario.rounds:
            yield Mistake(
                ("services", i, "arrival"),
                f"must be at most the {number(scenario.rounds)} rounds, not {number(service.arrival)}",
            )


def _bandwidths(scenario: Scenario) -> Iterator[Mistake]:
    """Yield what is said twice of how long models travel, and what is not said of it."""
    kinds, used = scenario.clients.kinds(), scenario.clients.devices is not None
    for way in ("download", "upload"):
        key, seconds = f"{way}_mbps", f"{way}_seconds"
        own = [bool(getattr(it, key)) for _, it in kinds]
        if not any(own) and scenario.clients.devices is None:
            continue
        used = True
        for (group, _), has in zip(kinds, own, strict=True):
            if not has and any(own):
                place = ("clients", key) if group is None else ("clients", "groups", group, key)
                yield Mistake(place, "is missing; either all clients have a bandwidth, or none has")
        if given := getattr(scenario.timeline, seconds):
            what = f"must be 0 where clients have {key}, which says how long models travel, not {number(given)}"
            if seconds in scenario.timeline.model_fields_set:
                yield Mistake(("timeline", seconds), what)
            else:
                given_by = [_where(scenario, group, key) for (group, _), has in zip(kinds, own, strict=True) if has]
                path = (*given_by, ("clients", "devices"))[0]
                yield Mistake(path, f"timeline.{seconds} {what}, which is its default; set it to 0")
    if scenario.clients.devices is not None:
        given_too = [(group, key) for group, it in kinds for key in _OF_DEVICES if getattr(it, key) != _PLAIN[key]]
        for path in dict.fromkeys(_where(scenario, *it) for it in given_too):
            yield Mistake(path, "cannot be given together with clients.devices, which has a column of it")
    for i, service in enumerate(scenario.services):
        if used and scenario.model_bytes(service) is None:
            what = f"is missing; how large a model of {quoted(service.dataset)} is cannot be counted here"
            yield Mistake(("services", i, "model_bytes"), what)
        elif not used and service.model_bytes is not None:
            what = "says nothing where no client has a bandwidth; give clients.upload_mbps, or remove it"
            yield Mistake(("services", i, "model_bytes"), what)


def _streams(scenario: Scenario) -> Iterator[Mistake]:
    """Yield what is wrong with when services arrive, and with how long they stay."""
    for i, stream in enumerate(scenario.streams):
        at: Path = ("streams", i)
        if (stream.rate is None) == (not stream.times):
            yield Mistake(
                (*at, "rate"),
                "is missing; give it or times" if not stream.times else "has times beside it; remove one of them",
            )
        elif stream.times and len(stream.times) != stream.count:
            yield Mistake((*at, "times"), f"has {len(stream.times)} numbers for {counted(stream.count, 'service')}")
        elif list(stream.times) != sorted(stream.times):
            yield Mistake((*at, "times"), "must not fall: services are numbered in the order in which they arrive")
        if stream.name in (service.name for service in scenario.services):
            yield Mistake((*at, "name"), f"is also the name of a service: {quoted(stream.name)}")
        if len(longest := f"{stream.name}-{stream.count}") > LONGEST_NAME:
            yield Mistake((*at, "name"), f"is too long: {longest} has more than {LONGEST_NAME} characters")
    if (total := len(scenario.services)) > MOST_SERVICES:
        yield Mistake(("streams",), f"make {number(total)} services; a scenario has at most {number(MOST_SERVICES)}")
    slot = scenario.timeline.slot
    lasting = {("services", i, "patience"): it.patience for i, it in enumerate(scenario.services) if it.patience}
    if slot is None:
        for path in [*(("streams", i) for i in range(len(scenario.streams))), *lasting]:
            yield Mistake(path, "counts seconds, which needs rounds of a known length; set timeline.slot")
        return
    for path, patience in lasting.items():
        if patience < slot:  # it may be over before the service takes part, which is from the next slot on
            yield Mistake(path, f"must be at least a slot of {number(slot)} seconds, not {number(patience)}")


def _budget_caps(scenario: Scenario) -> Iterator[Mistake]:
    """Yield budgets, at first and later, that are above what a service can save."""
    for i, service in enumerate(scenario.services):
        if (cap := service.budget_cap) is None:
            continue
        if cap < service.budget:
            what = f"must be at least the budget of {number(service.budget)}, not {number(cap)}"
            yield Mistake(("services", i, "budget_cap"), what)
        for place, change in enumerate(scenario.interventions):
            value = change.value
            if change.key == f"services.{service.name}.budget" and isinstance(value, int | float) and value > cap:
                what = f"must be at most the budget_cap of {number(cap)}, not {number(value)}"
                yield Mistake(("interventions", place, "value"), what)


def _continuous(scenario: Scenario) -> Iterator[Mistake]:
    """Yield what a market whose work outlasts its rounds lacks or cannot have, and what only such a market has."""
    clock, market, clients = scenario.timeline, scenario.market, scenario.clients
    if clock.slots is not None and not clock.decide:
        yield Mistake(("timeline", "slots"), "counts what rounds counts, where no event ends rounds; remove it")
    elif clock.slots is not None and clock.slots > scenario.rounds:
        what = f"must be at most the {number(scenario.rounds)} rounds, not {number(clock.slots)}"
        yield Mistake(("timeline", "slots"), what)
    for place, event in enumerate(clock.decide):
        if event in clock.decide[:place]:
            yield Mistake(("timeline", "decide", place), f"lists {quoted(event)} twice")
    if not clock.continuous:
        if clients.presence != ClientPresence():
            what = 'says when clients come and go at any instant; set timeline.mode to "continuous", or remove it'
            yield Mistake(("clients", "presence"), what)
        given = [("services", i, "aggregate") for i, it in enumerate(scenario.services) if it.aggregate]
        for path in [*((("timeline", "aggregate"),) if clock.aggregate != Aggregate() else ()), *given]:
            what = (
                'says when models are made where work outlasts rounds; set timeline.mode to "continuous", or remove it'
            )
            yield Mistake(path, what)
        if clock.decide:
            what = 'says when services decide while work goes on; set timeline.mode to "continuous", or remove it'
            yield Mistake(("timeline", "decide"), what)
        return
    if clock.slot is None:
        yield Mistake(("timeline", "slot"), "is missing; a continuous market needs the seconds between two decisions")
    if market.contract_rounds > 1:
        yield Mistake(("market", "contract_rounds"), "must be 1 where work outlasts rounds (timeline.mode)")
    if market.sequential:
        yield Mistake(("market", "impressions"), 'must be "together" where work outlasts rounds (timeline.mode)')
    for own in scenario.clients.behaviours():
        with suppress(InputError):  # a name that is unknown is named elsewhere
            if own.registry.load(own.name).close is not Behaviour.close:
                what = f"{own.name!r} learns from rounds that end with their work (timeline.mode); choose another one"
                yield Mistake((*own.table, own.key), what)
    if scenario.clients.responds:
        yield Mistake(
            ("clients", "response"), "cannot be given where work outlasts rounds (timeline.mode); remove one of them"
        )


def _presence(scenario: Scenario, *, played: bool) -> Iterator[Mistake]:
    """Yield what is said twice, or by halves, of when clients are there; files of a run that was played may be gone."""
    clients, presence = scenario.clients, scenario.clients.presence
    missing = [key for key in ("stay_seconds", "away_seconds") if getattr(presence, key) is None]
    if missing and presence != ClientPresence():
        yield Mistake(("clients", "presence", missing[0]), "is missing")
    if presence.given and clients.availability is not None:
        yield Mistake(("clients", "presence"), "cannot be given together with clients.availability; remove one of them")
    begin, end = presence.hours
    if begin % 24 == end % 24 and (begin, end) != (0, 24):
        what = f"must be two times of the day, or [0, 24] for all of it, not [{begin:g}, {end:g}]"
        yield Mistake(("clients", "presence", "hours"), what)
    instants = presence.given
    if instants and (stays := presence.draws(clients.count, horizon(scenario))) > LARGEST_MARKET:
        what = f"would draw some {number(int(stays))} stays, more than {number(LARGEST_MARKET)}"
        yield Mistake(("clients", "presence"), f"{what}; let clients stay longer, or be away longer")
    if clients.availability is not None:
        if played:
            return
        try:
            trace = trace_of(scenario)
        except InputError as error:
            yield Mistake(("clients", "availability"), str(error))
            return
        instants = trace is not None and trace.intervals.instants
        if instants and scenario.timeline.period is None:
            what = 'is in seconds, and rounds may take any time; set timeline.mode to "continuous", or list rounds'
            yield Mistake(("clients", "availability"), what)
        elif trace is not None and instants and trace.intervals.rows[:, 1].min() >= to_micro(horizon(scenario)):
            what = f"has nobody there in the {number(horizon(scenario))} seconds that the run may take"
            yield Mistake(("clients", "availability"), what)
    if clients.offline_work == "lost" and not instants and presence == ClientPresence():
        what = "says nothing unless clients come and go at any instant (clients.presence, or a trace in seconds)"
        yield Mistake(("clients", "offline_work"), what)


def _market_size(scenario: Scenario) -> Iterator[Mistake]:
    count, services = scenario.clients.count, len(scenario.services)
    if count * services > LARGEST_MARKET:
        yield Mistake(
            ("clients", "count"),
            f"{number(count)} clients times {number(services)} services are more than {number(LARGEST_MARKET)}",
        )


def _evaluation(scenario: Scenario, used: Mapping[str, DatasetInfo]) -> Iterator[Mistake]:
    wanted = scenario.training.eval_samples
    if wanted is None or not used:
        return
    name, facts = min(used.items(), key=lambda item: item[1].test_size)
    if wanted > facts.test_size:
        yield Mistake(
            ("training", "eval_samples"),
            f"must be at most {number(facts.test_size)}, the test images of {name}, not {number(wanted)}",
        )


def _aggregation(scenario: Scenario) -> Iterator[Mistake]:
    training = scenario.training
    if training.aggregation.kind != FEDAVG and not BACKENDS[training.backend].trains:
        yield Mistake(
            ("training", "aggregation", "kind"),
            f"{training.aggregation.kind!r} needs models that are trained, and backend = {quoted(training.backend)} "
            f'follows curves of {FEDAVG}; set training.backend to "real", or the kind to {quoted(FEDAVG)}',
        )


def _conduct(scenario: Scenario) -> Iterator[Mistake]:
    backend = scenario.training.backend
    for i, group in enumerate(scenario.clients.groups):
        if group.conduct and not BACKENDS[backend].trains:
            keys = ("label_noise", "label_flip", "free_ride", "update_scale")
            key = next(key for key in keys if getattr(group, key) != type(group).model_fields[key].default)
            yield Mistake(
                ("clients", "groups", i, key),
                f"needs models that are trained, and backend = {quoted(backend)} follows curves of honest "
                f'training; set training.backend to "real", or remove {key}',
            )


def _response(scenario: Scenario) -> Iterator[Mistake]:
    own, trains = scenario.clients.response, BACKENDS[scenario.training.backend].trains
    if own.kind is None and own != ClientResponse():
        yield Mistake(("clients", "response"), "has no kind, so that its other keys say nothing; name one")
    elif own.kind is not None and own.of in ("epochs", "epsilon") and not trains:
        yield Mistake(
            ("clients", "response", "of"),
            f"{own.of!r} needs models that are trained, and backend = {quoted(scenario.training.backend)} knows "
            'data and speed alone; set training.backend to "real", or give a part of these',
        )
    if own.kind is not None and scenario.market.contract_rounds > 1:
        what = "must be 1 where clients respond to each award (clients.response); remove one of them"
        yield Mistake(("market", "contract_rounds"), what)


def _fits(scenario: Scenario, used: Collection[str]) -> Iterator[Mistake]:
    backend = BACKENDS[scenario.training.backend]
    for i, service in enumerate(scenario.services):
        if service.dataset in used:
            try:
                if scenario.dqi == "fitted":
                    dqi_fit(service.dataset)
                backend.fits(service.dataset, scenario.training_for(service.dataset))
            except FitError as error:
                yield Mistake(("services", i, "dataset"), str(error))


# The options of plug-ins


def _options(scenario: Scenario) -> Iterator[Mistake]:
    """Yield options that do not exist or are missing, else what a built-in says of their values."""
    for plugin in scenario.plugins():
        at, registry = (*plugin.table, plugin.key), plugin.registry
        places: dict[str, Path] = {option: (*plugin.table, "options", option) for option in plugin.options}
        problems = list(_names(registry, plugin.name, plugin.options, places, at))
        yield from problems
        # Creating a user's own may do anything; a trial comes later.
        if problems or not registry.is_builtin(plugin.name):
            continue
        try:
            plugin.create()
        except InputError as error:
            reason = str(error).removeprefix(f"{registry.kind} {plugin.name!r}: ")
            yield Mistake(places.get(reason.partition(" ")[0], at), str(error))


def _policy_options(scenario: Scenario) -> Iterator[Mistake]:
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
            yield from _names(POLICIES, service.policy, given, places, (*at, "policy"))


def _not_cleared(scenario: Scenario) -> Iterator[Mistake]:
    """Yield the mechanisms, at first and later, that cannot clear a market of these services, or of so many clients."""
    used: list[tuple[Path, str]] = [(("market", "mechanism"), scenario.market.mechanism)]
    for place, change, later in new_players(scenario):
        if change.key == MECHANISM:
            used.append((("interventions", place, "value"), later.market.mechanism))
    services, clients = len(scenario.services), scenario.clients.count
    for path, name in used:
        kind = MECHANISMS.load(name)
        if kind.platform_budget and (limited := [it.name for it in scenario.services if it.total_budget is not None]):
            yield Mistake(
                path,
                f"{name!r} lets all services pay from one budget, but {limited[0]} has a total_budget of its own; "
                "remove that, or choose another mechanism",
            )
        if kind.platform_budget and (saving := [it.name for it in scenario.services if it.budget_cap is not None]):
            one = f"{name!r} lets all services pay from one budget, of which {saving[0]} cannot save (budget_cap)"
            yield Mistake(path, f"{one}; remove that, or choose another mechanism")
        if kind.platform_budget and scenario.market.contract_rounds > 1:
            one = f"{name!r} lets all services pay from one budget, of which contracts cannot hold the money of each"
            yield Mistake(("market", "contract_rounds"), f"{one}; hire for one round, or choose another mechanism")
        if scenario.market.sequential and not kind.by_client:
            what = f"{name!r} clears all clients of a round together"
            yield Mistake(path, f"{what}, not one after another; choose another mechanism, or remove impressions")
        if scenario.timeline.continuous and (why := _not_continuous(kind)):
            what = f"{name!r} {why}, and in a continuous market cores come free one by one"
            yield Mistake(path, f"{what}; choose another mechanism")
        largest = kind.largest
        if largest is not None and services * clients > largest:
            yield Mistake(
                path,
                f"{name!r} clears markets of at most {largest:,} pairs of a service and a client; this one has "
                f"{services} x {clients:,}; choose another mechanism, or fewer of them",
            )


def _not_continuous(kind: type[Mechanism]) -> str | None:
    """Return why a mechanism cannot clear cores as they come free; None if it can."""
    refused = {
        "clears all clients of a round together": not (kind.by_client or kind.clears_standing),
        "takes offers in several steps": kind.steps is not Mechanism.steps,
        "sets prices after delivery": kind.settle is not Mechanism.settle,
        "learns from rounds that are over": kind.counts_deliveries or kind.close is not Mechanism.close,
        "keeps budgets itself": kind.keeps_budgets,
    }
    return next((why for why, it_does in refused.items() if it_does), None)


def _names(
    registry: Registry[Any],
    name: str,
    options: Mapping[str, Any],
    places: Mapping[str, Path],  # of the options
    at: Path,  # of the name
) -> Iterator[Mistake]:
    try:
        for option, problem in registry.wrong_options(name, options):
            yield Mistake(places.get(option, at), f"{registry.kind} {name!r} {problem}")
    except InputError as error:  # a package that cannot be imported
        yield Mistake(at, str(error))


# The data of clients


def _data(
    scenario: Scenario,
    used: Mapping[str, DatasetInfo],  # the data sets that its services learn, by name
    *,
    played: bool,  # as in ``Catalogue``
) -> Iterator[Mistake]:
    """Yield what is wrong with the data that clients are to hold."""
    clients, mixed, owned = scenario.clients, scenario.clients.label_mix.dirichlet is not None, scenario.data.given
    kinds = [it for _, it in clients.kinds()]
    yield from _groups(scenario)
    if owned:
        yield from _owned(scenario, () if played else used)
    elif not all(it.data_size for it in kinds):
        yield Mistake(("clients", "data_size"), "is missing; list data sizes, or give a data.partition")
    if not mixed and not owned and not all(it.emd for it in kinds):
        yield Mistake(("clients", "emd"), "is missing; list EMDs, or give a label_mix or a data.partition")
    elif mixed and clients.emd:
        yield Mistake(
            ("clients", "label_mix"),
            "cannot be given together with clients.emd; remove one of them (emd = [] is none)",
        )
    if used:
        yield from _emds(scenario, used)
    for name, facts in used.items():
        yield from check_supply(scenario, name, facts)
    yield from _costs(scenario, used)


def _groups(scenario: Scenario) -> Iterator[Mistake]:
    """Yield what is wrong with the groups of clients, besides what is wrong with their data."""
    clients, total = scenario.clients, 0
    follow = "data.partition" if scenario.data.given else "clients.label_mix" if clients.label_mix.dirichlet else None
    for i, group in enumerate(clients.groups):
        at, total = ("clients", "groups", i), total + group.count
        if total > clients.count:
            yield Mistake(
                (*at, "count"),
                f"makes {number(total)} clients of the groups up to this one; clients.count is {number(clients.count)}",
            )
            return
        if group.cores is not None and group.cores > clients.cores:
            most = f"{number(clients.cores)} of clients.cores, the most that a client has"
            yield Mistake((*at, "cores"), f"must be at most the {most}, not {number(group.cores)}")
        names = [it.name for it in (*scenario.services, *scenario.streams)]
        for place, name in enumerate(group.services or ()):
            if name not in names:
                yield Mistake((*at, "services", place), unknown("service", name, names))
        if group.emd is not None and follow:
            yield Mistake((*at, "emd"), f"cannot be given together with {follow}, from which it follows")
        if group.label_mix.dirichlet is not None and follow != "clients.label_mix":
            yield Mistake((*at, "label_mix"), "is possible only where clients.label_mix is given; give it there, too")
        if group.data_size is not None and scenario.data.given and not clients.data_size:
            yield Mistake((*at, "data_size"), "is possible only where clients.data_size is given; give it there, too")


def _where(scenario: Scenario, group: int | None, key: str) -> Path:
    """Return where the value stands that a key has for the clients of a group, or of none."""
    own = group is not None and getattr(scenario.clients.groups[group], key) is not None
    return ("clients", "groups", group, key) if group is not None and own else ("clients", key)


def _owned(scenario: Scenario, used: Collection[str]) -> Iterator[Mistake]:
    """Yield what does not fit to clients that own images, and what is wrong with how these are divided."""
    clients = scenario.clients
    for key, given in (
        ("emd", bool(clients.emd)),
        ("label_mix", clients.label_mix.dirichlet is not None),
        ("lasting", bool(clients.lasting.persistence or clients.lasting.drift)),
    ):
        if given:
            yield Mistake(("clients", key), "cannot be given together with data.partition, from which it follows")
    found = []
    for name in used:
        try:
            partition_of(scenario, name)
        except InputError as error:
            override = scenario.data.by_dataset.get(name)
            own = override is not None and override.partition is not None
            at: Path = ("data", "by_dataset", name, "partition") if own else ("data", "partition")
            found.append(Mistake(at, str(error)))
    if not found and {*used} == {service.dataset for service in scenario.services}:
        try:
            without_images(scenario)
        except InputError as error:
            found.append(Mistake(("data",), str(error)))
    yield from found


def _owned_sizes(scenario: Scenario) -> Collection[int]:
    try:
        return {size for it in (partitions_of(scenario) or {}).values() for size in it.sizes if size}
    except InputError:  # which ``_owned`` reports
        return ()


def check_supply(scenario: Scenario, name: str, facts: DatasetInfo) -> Iterator[Mistake]:
    """Yield what a data set lacks: images to hold out, and images of each label for the most lopsided draw."""
    trains = BACKENDS[scenario.training.backend].trains
    share = scenario.training.validation if trains else 0.0
    if share and not held_out(facts.train_size, share):
        yield Mistake(
            ("training", "validation"),
            f"{share} of the {number(facts.train_size)} training images of {name} is not one image; set a larger "
            "share, or 0 to measure accuracy on the test images",
        )
    if scenario.data.given:  # then EMDs are those of what there is
        return
    left = left_at_least(facts.rarest_label, share)
    has = f"has {number(facts.rarest_label)}"
    if left < facts.rarest_label:
        has += f", of which training.validation = {share} leaves {number(left)}"
    sizes = [
        ((*_where(scenario, group, "data_size"), i), size, _emds_of(clients, facts))
        for group, clients in scenario.clients.kinds()
        for i, size in enumerate(clients.data_size)
    ]
    for place, size, emds in sizes:
        if size > facts.train_size:
            yield Mistake(
                place, f"{number(size)} images are more than the {number(facts.train_size)} training images of {name}"
            )
            continue
        needed, emd = max(((largest_count(size, emd, facts.labels), emd) for emd in emds), default=(0, 0.0))
        if needed > left:
            yield Mistake(
                place,
                f"{number(size)} images at EMD {emd!r} can need {number(needed)} of one of the {facts.labels} labels; "
                f"the rarest label of {name} {has}",
            )


def _emds(scenario: Scenario, used: Mapping[str, DatasetInfo]) -> Iterator[Mistake]:
    name, facts = min(used.items(), key=lambda item: item[1].labels)
    limit = largest_emd(facts.labels)
    for group, clients in scenario.clients.kinds():
        for i, emd in enumerate(clients.emd):
            if emd > limit:
                yield Mistake(
                    (*_where(scenario, group, "emd"), i),
                    f"must be at most {limit:g} = 2 (1 - 1/{facts.labels}) for the {facts.labels} labels of {name}, "
                    f"not {number(emd)}",
                )


def _emds_of(clients: Clients, facts: DatasetInfo) -> list[float]:
    """Return the EMDs that can be asked for and that can exist."""
    return [emd for emd in clients.emds(facts.labels) if emd <= largest_emd(facts.labels)]


def _costs(scenario: Scenario, used: Mapping[str, DatasetInfo]) -> Iterator[Mistake]:
    """No data set costs a client a negative or absurd amount, at the EMD that it really gets.

    What clients bid for a cost is up to their behaviour, which keeps bids from becoming negative.
    """
    for group, clients in scenario.clients.kinds():
        cost, place = clients.cost, ("clients", "cost") if group is None else ("clients", "groups", group)
        mistakes = list(_cost_mistakes(cost, place if group is None else (*place, "cost")))
        yield from mistakes
        if not mistakes and COSTS.is_builtin(cost.kind) and (pairs := _pairs(scenario, clients, used)):
            with suppress(InputError):  # of options, which are checked elsewhere
                devices = devices_of(scenario)
                yield from _amounts(clients, clients.speed if devices is None else devices.speed, pairs, place)


def _cost_mistakes(cost: ClientCost, place: Path) -> Iterator[Mistake]:
    """Yield what is wrong with the keys of a cost that stands at a place."""
    unit = cost.unit
    missing = [key for key in ("per_sample", "per_emd") if key not in cost.prices]
    if cost.kind != LINEAR:
        for key in cost.prices:
            yield Mistake(
                (*place, key),
                f'goes with the kind linear, not {cost.kind}; give the cost as a whole, as {{kind = "{cost.kind}"}}',
            )
    elif cost.options:
        yield Mistake((*place, "options"), "the kind linear has none; its keys are per_sample and per_emd")
    elif missing and unit == CostUnit():
        yield Mistake((*place, missing[0]), "is missing")
    if unit.uniform and unit.choices:
        yield Mistake((*place, "unit"), "has uniform and choices; remove one of them")
    elif unit.model_fields_set and not (unit.uniform or unit.choices):
        yield Mistake((*place, "unit"), "has no types to draw from; give it uniform or choices, or remove it")
    if unit.uniform and (len(unit.uniform) != 2 or unit.uniform[0] > unit.uniform[1]):
        yield Mistake((*place, "unit", "uniform"), "must be [lowest, highest]")


def _pairs(scenario: Scenario, clients: Clients, used: Mapping[str, DatasetInfo]) -> list[tuple[int, float]]:
    """Return the data sizes and the EMDs that clients really get with them."""
    return [
        (size, realised_emd(size, emd, facts.labels))
        for facts in used.values()
        for size in clients.data_size or _owned_sizes(scenario)
        for emd in _emds_of(clients, facts)
    ]


def _amounts(
    clients: Clients, speeds: Sequence[float], pairs: Sequence[tuple[int, float]], place: Path
) -> Iterator[Mistake]:
    sizes, emds = (np.array(column) for column in zip(*pairs, strict=True))
    cost = clients.cost.plugin().create()
    amounts = amounts_at_ends(cost, sizes, emds, speeds, clients.cost.unit.distribution())
    found = [(float(each), *pair) for at_end in amounts for each, pair in zip(at_end.tolist(), pairs, strict=True)]
    lowest, highest = min(found), max(found)
    if to_micro(min(lowest[0], 0.0)) < 0:
        yield Mistake(place, f"{_what(*lowest)}, and must not be negative")
    with_noise = highest[0] * (1 + clients.cost.noise)
    if with_noise > LARGEST_COST:
        yield Mistake(place, f"{_what(with_noise, *highest[1:])}, above the limit of {number(LARGEST_COST)}")


def _what(cost: float, size: int, emd: float) -> str:
    return f"the cost of {number(size)} images at EMD {emd:g} would be {cost:.6f}"
