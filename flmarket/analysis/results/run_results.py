"""Runs as measures and figures see them: arrays by round and service, and what clients earned, from the logs' frames.

A service that left early counts until the last round of its scenario, with accuracy and reward held and nothing spent.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from des.money import MICRO, to_micro
from des.observation import Status
from fl.arrays import AnyArray, BoolArray, FloatArray, IntArray
from flmarket.analysis.results.setting import RunSetting, rest_of, settings_of, with_labels
from flmarket.core.errors import InputError
from flmarket.core.names import did_you_mean
from flmarket.core.tracking import tracked
from learning.statistics import RoundsToTarget
from scenarios.file.differences import ScenarioValues, covers, flattened, values_text
from scenarios.file.interventions import market_of
from scenarios.file.schema import Scenario
from scenarios.logs.columns import CLIENTS
from scenarios.logs.directory import RunDirectory
from scenarios.logs.finding import Sources, complete_runs
from scenarios.logs.reading import RunReader
from scenarios.logs.unlike_runs import mixed_arithmetic, mixed_players, mixed_versions
from scenarios.stays import Stay, stays

if TYPE_CHECKING:  # it takes long to import, and screens that follow a run come here, too
    import pandas as pd

HELD = (
    "accuracy",
    "test_accuracy",
    "reward",
    "sim_time",
)  # columns that a service keeps at their height after it has left
_MONEY = ("budget", "offered", "spent")
_COUNTS = ("wanted", "served", "refused")
_INTERESTS = ("cost", "data_size", "reported_size", "emd", "reported_emd")


def lengthened(column: str, values: FloatArray, count: int) -> FloatArray:
    """Return [count, M] a column of a run that all services have left before: some are held, nothing more is spent."""
    after = values[-1:] if column in HELD else np.zeros_like(values[-1:])
    return np.concatenate([values, np.repeat(after, count - len(values), axis=0)])


class Tables(dict[str, "pd.DataFrame"]):
    """A run's tables by name, each read when it is first looked at."""

    def __init__(
        self,
        run: RunDirectory,
        sizes: Mapping[str, int] | None = None,  # bytes of each table, of a run that is still played
    ) -> None:
        super().__init__()
        self._run, self._sizes = run, sizes or {}

    def __missing__(self, name: str) -> "pd.DataFrame":
        from flmarket.analysis.log_frames import read_table

        self[name] = table = read_table(self._run, name, self._sizes.get(name))
        return table


@dataclass(frozen=True)
class RunResult:
    """One run, over the N rounds of its setting."""

    setting: RunSetting  # what it shares with other runs
    policy: str  # the run's label
    policies: tuple[str, ...]  # [M] the services' policies
    seed: int
    directory: RunDirectory  # where its logs are
    curves: Mapping[str, FloatArray]  # [N, M] columns of rounds.csv, money in units, times in seconds
    played: int  # how many of the rounds were played: it ends when all services have left
    exits: Sequence[int | None]  # [M] the round in which each service met its target; None if it did not
    last: Sequence[int]  # [M] the round with which each gave up; N for one that did not
    tables: "Mapping[str, pd.DataFrame]" = field(default_factory=dict)  # its frames, by name

    @classmethod
    def of(
        cls,
        setting: RunSetting,
        policy: str,
        seed: int,
        directory: RunDirectory,
        rounds: "Mapping[str, AnyArray] | pd.DataFrame",  # the columns of rounds.csv, money in micro-units
        tables: "Mapping[str, pd.DataFrame]",
    ) -> "RunResult":
        """Return a run from its logs; its rounds may be fewer than N, as all services have left."""
        services, count = setting.services, setting.scenario.rounds
        names = np.asarray(rounds["service"], dtype=object)
        played = len(names) // len(services)
        if tuple(names) != services * played or not 0 < played <= count:
            raise InputError(f"{directory.path}: rounds.csv does not have one row for each round and service")
        curves = {}
        for column in (*HELD, *_MONEY, *_COUNTS):
            values = np.asarray(rounds[column], dtype=np.float64).reshape(played, -1)
            if not np.isfinite(values).all():
                raise InputError(f"{directory.path}: rounds.csv: a number of {column} is not finite")
            curves[column] = lengthened(column, values, count)
            if column in (*_MONEY, "sim_time"):
                curves[column] /= MICRO
        status, numbers = np.asarray(rounds["status"], dtype=object), np.asarray(rounds["round"])
        reached, over = (
            dict(zip(names[left], numbers[left].tolist(), strict=True))
            for left in (status == Status.REACHED, status == Status.GAVE_UP)
        )
        policies = tuple(rounds["policy"][: len(services)])
        exits, last = [reached.get(service) for service in services], [over.get(it, count) for it in services]
        return cls(setting, policy, policies, seed, directory, curves, played, exits, last, tables)

    def place(self, service: str) -> int:
        """Return the place of a service among those of the run."""
        return self.setting.services.index(service)

    def __getitem__(self, column: str) -> FloatArray:
        """Return [N, M] a column of rounds.csv."""
        return self.curves[column]

    @cached_property
    def arrivals(self) -> IntArray:
        """[M] the first round of each service; the last one of a service that would come later."""
        waits: IntArray = (self["reward"] == 0).sum(axis=0)  # nobody has a reward before
        return np.minimum(1 + waits, len(self["reward"]))

    @cached_property
    def came(self) -> BoolArray:
        """[M] whether each service took part: one that would arrive later than the run lasted did not."""
        return np.asarray((self["reward"] > 0).any(axis=0))

    @property
    def present(self) -> BoolArray:
        """[M] whether each service counts for the market: those that took part do, or all where none did."""
        return self.came if self.came.any() else ~self.came

    @cached_property
    def stays(self) -> Sequence[Stay]:
        """When each service comes to the market, and when its patience is over."""
        return stays(self.setting.scenario, self.seed)

    @cached_property
    def to_target(self) -> RoundsToTarget:
        """[M] when each target was met, counted from the service's arrival."""
        return RoundsToTarget.of(self.exits, self.last).since(self.arrivals)

    @property
    def normalised_reward(self) -> FloatArray:
        """[N, M] reward / Omega^target, as in the paper."""
        normalised: FloatArray = self["reward"] / self.setting.reward_at_target
        return normalised

    @property
    def wasted(self) -> FloatArray:
        """[N, M] money offered and not spent: in refused offers, and what winners offered above their price.

        Where a mechanism keeps budgets, offers are values, and money only as far as the budget goes.
        """
        wasted: FloatArray = np.minimum(self["offered"], self["budget"]) - self["spent"]
        return wasted

    @cached_property
    def offers(self) -> "pd.DataFrame":
        return self._known("offers")

    @cached_property
    def earnings(self) -> Mapping[str, AnyArray]:
        """By column, for each offer that was served: what its client was paid, and its profit, in units.

        ``missing`` are images that it reported and did not have, negative if it had more. Truthful clients have none,
        and their costs are their bids.
        """
        table = self.offers if self.truthful else self._known("clients")
        served = table["paid"].notna().to_numpy()
        names = ["service", "client", "paid", *(("bid",) if self.truthful else _INTERESTS)]
        columns = {name: table[name].to_numpy()[served] for name in names}
        columns["paid"] = columns["paid"] / MICRO
        columns["profit"] = columns["paid"] - columns["bid" if self.truthful else "cost"] / MICRO
        if not self.truthful:
            columns["missing"] = columns["reported_size"] - columns["data_size"]
            columns["misreported"] = (columns["missing"] != 0) | (columns["emd"] != columns["reported_emd"])
        return columns

    @property
    def in_units(self) -> "RunTables":
        """The run as a measure of a plug-in gets it."""
        return RunTables(self)

    @property
    def truthful(self) -> bool:
        """Whether the clients are: they bid what the work costs them, and report what they have."""
        return self.setting.scenario.clients.truthful

    def by_service(self, values: AnyArray) -> FloatArray:
        """Return [M] sums of a column of ``earnings``, or of one like it."""
        return np.bincount(self.paying, values, len(self.setting.services)).astype(np.float64)

    @cached_property
    def paying(self) -> IntArray:
        """The place of the service that each line of ``earnings`` is of."""
        places = {service: m for m, service in enumerate(self.setting.services)}
        return np.array([places[service] for service in self.earnings["service"]], dtype=np.int64)

    @cached_property
    def periods(self) -> tuple[IntArray, IntArray]:
        """[N] When each round began, and when it ended, in microseconds; of a continuous market.

        Rounds that were not played, as all services had left, count as slots, as far as the market would have lasted.
        """
        clock = self.setting.scenario.timeline
        slot = to_micro(clock.slot or 0)
        ends = np.rint(MICRO * self["sim_time"][: self.played, 0]).astype(np.int64)
        more = (ends[-1] // slot + 1 + np.arange(len(self["accuracy"]) - len(ends))) * slot
        if clock.slots is not None:
            more = np.minimum(more, clock.slots * slot)
        ends = np.concatenate([ends, more])
        return np.concatenate([[0], ends[:-1]]), ends

    @property
    def lengths(self) -> FloatArray | None:
        """[N] How long each round is, in slots; None where all are slots."""
        clock = self.setting.scenario.timeline
        return np.diff(self.periods, axis=0)[0] / to_micro(clock.slot or 0) if clock.decide else None

    @property
    def income(self) -> FloatArray:
        """[C] money that each client earned in the run."""
        clients, paid = self.earnings["client"], self.earnings["paid"]
        return np.bincount(clients, paid, self.setting.scenario.clients.count).astype(np.float64)

    def _known(self, name: str) -> "pd.DataFrame":
        """Return a table whose services and clients are the scenario's."""
        table = self.tables[name]
        clients, count = table["client"].to_numpy(), self.setting.scenario.clients.count
        known = set(table["service"].unique()) <= set(self.setting.services)
        if not known or not ((clients >= 0) & (clients < count)).all():
            raise InputError(f"{self.directory.path}: {name}.csv names a service or a client that there is not")
        return table


@dataclass(frozen=True, slots=True)
class RunTables:
    """A run as ``@flmarket.measure`` hands it to a function.

    ``rounds``, ``offers``, ``events``, ``clients``, ``responses`` and ``models`` are its logs as data frames
    (docs/logs.md), money in units and times in seconds; each call returns a copy.
    """

    _run: RunResult

    @property
    def scenario(self) -> Scenario:
        """The scenario that was played."""
        return self._run.setting.scenario

    @property
    def services(self) -> tuple[str, ...]:
        """The names of the services, in their order."""
        return self._run.setting.services

    @property
    def policy(self) -> str:
        """The label of the policy that was chosen for all services, or ``as-configured``."""
        return self._run.policy

    @property
    def seed(self) -> int:
        return self._run.seed

    @property
    def rounds(self) -> "pd.DataFrame":
        """A row for each round that was played and each service, also one that has left or has not arrived."""
        return self._table("rounds")

    @property
    def offers(self) -> "pd.DataFrame":
        """A row for each offer."""
        return self._table("offers")

    @property
    def events(self) -> "pd.DataFrame":
        """A row for each event on the market's timeline."""
        return self._table("events")

    @property
    def clients(self) -> "pd.DataFrame":
        """A row for each offer: what it is to the client. Truthful clients, which have no such log, have it here."""
        if not self._run.truthful:
            return self._table("clients")
        offers = self.offers
        same = {"reported_size": offers["data_size"], "reported_emd": offers["emd"], "cost": offers["bid"]}
        profit = offers["paid"] - offers["bid"]
        return offers.assign(**same, profit=profit)[list(CLIENTS.names)]

    @property
    def responses(self) -> "pd.DataFrame":
        """A row for each award, where clients respond: the parts of the work that were promised and done."""
        return self._table("responses")

    @property
    def models(self) -> "pd.DataFrame":
        """A row for each model that was made, where work outlasts rounds."""
        return self._table("models")

    def _table(self, name: str) -> "pd.DataFrame":
        from flmarket.analysis.log_frames import in_units

        return in_units(self._run.tables[name], name)


def read(sources: Sources, damaged: Callable[[str], None] | None = None) -> list[RunResult]:
    """Read all complete runs below the sources, by scenario, sweep point (as the scenario lists them), policy and seed.

    Damaged runs are an error, or passed to ``damaged``; see ``complete_runs``.
    """
    results = read_runs(complete_runs(sources, damaged))
    seen: dict[tuple[str, str, int], RunResult] = {}
    for result in results:
        key = result.setting.folder.name, result.policy, result.seed
        if (other := seen.setdefault(key, result)) is not result:
            raise InputError(f"{result.directory.path} and {other.directory.path} are the same run; name one of them")

    def order(result: RunResult) -> tuple[str, int, int, str, str, int]:
        setting = result.setting
        changes = len(setting.scenario.interventions)  # forks come behind what they are of
        return setting.name, setting.point, changes, str(setting.folder), result.policy, result.seed

    return sorted(results, key=order)


def read_runs(runs: Iterable[RunDirectory]) -> list[RunResult]:
    """Read complete runs, in their order. Offers and clients are read when they are first looked at."""
    runs, results = list(runs), []
    settings = settings_of(runs)
    for run in tracked(runs, "runs read"):
        meta, setting = run.meta(), settings[run.folder]
        rounds = RunReader(run.path).arrays()
        results.append(RunResult.of(setting, meta["policy"], meta["seed"], run, rounds, Tables(run)))
    return results


def without_forks(runs: Sequence[RunResult], named: Iterable[Path] = ()) -> list[RunResult]:
    """Return the runs but forks of others, the same run with further interventions; those that are named stay."""

    def same(run: RunResult) -> tuple[object, ...]:
        setting = run.setting
        return setting.name, values_text(setting.sweep), markets[setting.folder], run.policy, run.seed

    def changes(run: RunResult) -> frozenset[str]:
        return frozenset(it.model_dump_json() for it in run.setting.scenario.interventions)

    kept = {path.resolve() for path in named}
    markets = {it: market_of(first.setting.scenario.model_dump()) for it, (first, *_) in by_setting(runs).items()}
    alike: dict[tuple[object, ...], list[frozenset[str]]] = defaultdict(list)
    for run in runs:
        alike[same(run)].append(changes(run))
    return [
        run
        for run in runs
        if run.directory.path.resolve() in kept or not any(other < changes(run) for other in alike[same(run)])
    ]


def compared_by(runs: Sequence[RunResult], key: str) -> list[RunResult]:
    """Return runs with their value of a dotted key in place of the policy: its values are compared as policies are.

    Settings that differ in the key alone become one, for each policy.
    """
    several = len(by_policy(runs)) > 1
    settings: dict[Path, RunSetting] = {}
    others: dict[Path, ScenarioValues] = {}
    compared: dict[tuple[Path, str, int], RunResult] = {}
    for run in runs:
        setting, values = run.setting, flattened(run.setting.scenario.model_dump(mode="json"))
        chosen = {at: it for at, it in values.items() if covers(key, at)}
        if key in setting.sweep:
            chosen = {key: setting.sweep[key]}
        if not chosen:
            meant = did_you_mean(key, list(values))
            raise InputError(f"{run.directory.path}: has no key {key!r} to compare by{meant}")
        label = values_text(chosen).removeprefix(f"{key}=")
        rest = f"{run.policy} {setting.scenario.interventions!r} {rest_of(values, [key])}"
        folder = Path(f"{setting.name}-{hashlib.sha256(rest.encode()).hexdigest()[:8]}")
        family = f"{setting.family}, {run.policy}" if several else setting.family
        first = settings.setdefault(folder, replace(setting, folder=folder, family=family))
        # Of the other swept keys, those of which all of its runs have the same value.
        sweep = {at: it for at, it in first.sweep.items() if at != key and setting.sweep.get(at) == it}
        settings[folder] = replace(first, sweep=sweep, family=first.family if sweep else "")
        unlike = {at: it for at, it in values.items() if not covers(key, at)}
        unlike |= {"policies": run.policy} if several else {}
        alone = ScenarioValues(setting.name, unlike, setting.scenario.interventions)
        others[folder] = others.setdefault(folder, alone)._replace(sweep=sweep)
        other = compared.setdefault((folder, label, run.seed), run)
        if other is not run:
            raise InputError(f"{run.directory.path} and {other.directory.path} do not differ in {key} alone")
    settings = with_labels(settings, others)
    return [
        replace(run, policy=label, setting=replace(settings[folder], scenario=run.setting.scenario))
        for (folder, label, _), run in compared.items()
    ]


def mixed(runs: Sequence[RunResult]) -> list[str]:
    """Return one line for each scenario whose runs differ in arithmetic, in version, or in agents or plug-ins."""
    metas = [(run.setting.name, run.directory.meta()) for run in runs]
    return mixed_arithmetic(metas) + mixed_versions(metas) + mixed_players(metas)


def remarks(runs: Sequence[RunResult]) -> list[str]:
    """Return one line for each scenario whose accuracies do not come from training."""
    settings = (members[0].setting for members in by_setting(runs).values())
    return [f"{setting.label}: {setting.backend.remark}" for setting in settings if setting.backend.remark]


def by_setting(runs: Iterable[RunResult]) -> dict[Path, list[RunResult]]:
    """Return the runs of each setting, by its folder, in order of appearance."""
    groups: dict[Path, list[RunResult]] = defaultdict(list)
    for run in runs:
        groups[run.setting.folder].append(run)
    return groups


def services_of(runs: Iterable[RunResult]) -> list[str]:
    """Return the services of runs, each once: some may have more than others."""
    return list(dict.fromkeys(service for run in runs for service in run.setting.services))


def by_policy(runs: Iterable[RunResult]) -> dict[str, list[RunResult]]:
    """Return the runs of each policy, by its label, in the order in which policies first appear."""
    groups: dict[str, list[RunResult]] = defaultdict(list)
    for run in runs:
        groups[run.policy].append(run)
    return groups
