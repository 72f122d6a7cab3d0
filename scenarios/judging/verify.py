"""``flmarket verify``: does a run's log keep every constraint, and does its money add up?

Written against the paper and the logs alone. It shares no code with the market, so a defect there can't hide here.
"""

import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fl.errors import InputError
from scenarios.file.schema import Scenario, Service
from scenarios.loader import load
from scenarios.logs.directory import SCENARIO, RunDirectory, State
from scenarios.logs.writing import TABLES
from scenarios.plugins import require_loaded

Row = Mapping[str, str]

_AWARDED = ("served", "dropped")
_CLOSE = 1e-9


@dataclass(frozen=True, slots=True)
class Logs:
    """A run's logs as rows of text, and the scenario they should follow."""

    scenario: Scenario
    rounds: Sequence[Row]
    offers: Sequence[Row]
    events: Sequence[Row]

    @classmethod
    def read(cls, path: Path) -> "Logs":
        """Read a run directory.

        Raises:
            InputError: a file is missing or is not the table it should be.
        """
        return cls(load(path / SCENARIO), *(_read(path / f"{table}.csv", columns) for table, columns in TABLES.items()))


@dataclass(slots=True)
class Verdict:
    """What was found in one run."""

    path: Path
    rounds: int = 0
    offers: int = 0
    paid: int = 0
    problems: list[str] = field(default_factory=list)


def verify(run: RunDirectory) -> Verdict:
    """Check a run's logs.

    Raises:
        InputError: the logs cannot be read at all, or a plug-in that the scenario names is not loaded.
    """
    require_loaded(run.meta().get("plugins", {}), str(run.path))
    verdict = Verdict(run.path)
    if run.state is not State.COMPLETE:
        verdict.problems.append("the run is not complete")
        return verdict
    logs = Logs.read(run.path)
    try:
        verdict.problems += check(logs)
        verdict.paid = sum(map(micro, (row["spent"] for row in logs.rounds)))
    except (ValueError, KeyError) as error:
        verdict.problems.append(f"a value is not what its column holds: {error}")
    verdict.rounds = len({row["round"] for row in logs.rounds})
    verdict.offers = len(logs.offers)
    return verdict


def check(logs: Logs) -> Iterator[str]:
    """Yield everything in the logs that breaks a rule."""
    offers: dict[tuple[str, str], list[Row]] = defaultdict(list)
    events: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in logs.offers:
        offers[row["round"], row["service"]].append(row)
    for row in logs.events:
        events[row["round"], row["service"]].append(row)
    yield from _shape(logs)
    yield from _bids(logs)
    yield from _cores(logs)
    yield from _budgets(logs)
    yield from _progress(logs)
    yield from _clock(logs)
    for row in logs.rounds:
        key = row["round"], row["service"]
        for problem in [*_money(row, offers[key]), *_events(row, offers[key], events[key])]:
            yield f"round {row['round']}: {row['service']}: {problem}"
    known = {(row["round"], row["service"]) for row in logs.rounds}
    for place in sorted({*offers} - known) + sorted({key for key in events if key[1]} - known):
        yield f"round {place[0]}: {place[1]}: has offers or events, and no row in rounds.csv"


def _shape(logs: Logs) -> Iterator[str]:
    """Logs are rectangular: rounds from 1, each with every service in the scenario's order, until the end."""
    names = [service.name for service in logs.scenario.services]
    found = [(row["round"], row["service"]) for row in logs.rounds]
    count = len(logs.rounds) // len(names)
    if found != [(str(n), name) for n in range(1, count + 1) for name in names]:
        yield "rounds.csv does not have one row for each round and service, in order"
    last = logs.rounds[-len(names) :]
    if count != logs.scenario.rounds and any(row["status"] == "training" for row in last):
        yield f"the run ends after round {count} of {logs.scenario.rounds}, and not all services have left"


def _bids(logs: Logs) -> Iterator[str]:
    """Each bid follows from the client's data; no payment is below it (eq. 5); no client is wanted twice."""
    clients = logs.scenario.clients
    seen = set()
    for row in logs.offers:
        where = f"round {row['round']}: {row['service']}: client {row['client']}"
        bid, payment = micro(row["bid"]), micro(row["payment"])
        cost = clients.cost.per_sample * int(row["data_size"]) - clients.cost.per_emd * float(row["emd"])
        if abs(bid - cost * 1e6) > 0.5 + 1e-3:
            yield f"{where}: the bid {row['bid']} is not the cost of its data, {cost:.6f}"
        if bid < 0 or payment < bid:
            yield f"{where}: the payment {row['payment']} is below the bid {row['bid']} (eq. 5)"
        if int(row["data_size"]) not in clients.data_size:
            yield f"{where}: a data size of {row['data_size']} is not in the scenario"
        if not 0 <= int(row["client"]) < clients.count:
            yield f"{where}: there is no such client"
        key = row["round"], row["service"], row["client"]
        if key in seen:
            yield f"{where}: is wanted twice"
        seen.add(key)


def _cores(logs: Logs) -> Iterator[str]:
    """A client serves the K highest payments, one on each core (eq. 2)."""
    of_client: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in logs.offers:
        of_client[row["round"], row["client"]].append(row)
    for (number, client), rows in of_client.items():
        where = f"round {number}: client {client}"
        cores, _, offline = _conditions(logs.scenario, int(number))
        if int(client) in offline:
            yield f"{where}: is offline, and is wanted"
        won = [row for row in rows if row["outcome"] in _AWARDED]
        lost = [row for row in rows if row["outcome"] not in _AWARDED]
        if len(won) > cores:
            yield f"{where}: serves {len(won)} services with {cores} cores (eq. 2)"
        if lost and len(won) < cores:
            yield f"{where}: refuses an offer with a core free"
        if won and lost and min(micro(row["payment"]) for row in won) < max(micro(row["payment"]) for row in lost):
            yield f"{where}: refuses a higher payment than one that it takes"
        if sorted(int(row["core"]) for row in won) != list(range(len(won))):
            yield f"{where}: its cores are not used once each"
        for row in lost:
            if row["core"] or row["start"] or row["end"]:
                yield f"{where}: works for {row['service']}, which was outbid"


def _conditions(scenario: Scenario, number: int) -> tuple[int, dict[str, float], list[int]]:
    """Return K, the services' budgets and who is offline in a round, after the interventions up to it."""
    cores, offline = scenario.clients.cores, []
    budgets = {service.name: service.budget for service in scenario.services}
    for change in sorted(scenario.interventions, key=lambda change: change.round):
        if change.round > number:
            break
        if change.key == "clients.cores":
            cores = change.value
        elif change.key == "clients.offline":
            offline = list(change.value)
        else:
            budgets[change.key.removeprefix("services.").removesuffix(".budget")] = change.value
    return cores, budgets, offline


def _budgets(logs: Logs) -> Iterator[str]:
    """Each row's budget is the scenario's."""
    for row in logs.rounds:
        budget = _conditions(logs.scenario, int(row["round"]))[1][row["service"]]
        if abs(micro(row["budget"]) - budget * 1e6) > 0.5:
            yield f"round {row['round']}: {row['service']}: the budget {row['budget']} is not the scenario's {budget}"


def _progress(logs: Logs) -> Iterator[str]:
    """A service trains until it meets its target, leaves, and is held; its reward is Omega^accuracy, then absorbing."""
    for service in logs.scenario.services:
        before: Row | None = None
        for row in logs.rounds:
            if row["service"] == service.name:
                for problem in _step(service, before, row):
                    yield f"round {row['round']}: {service.name}: {problem}"
                before = row


def _step(service: Service, before: Row | None, row: Row) -> Iterator[str]:
    accuracy, gone = float(row["accuracy"]), before is not None and before["status"] != "training"
    # Logged accuracies have six decimals, and the target may have more.
    met = accuracy >= service.target_accuracy - 5e-7
    if gone and (row["status"] != "left" or before is None or row["accuracy"] != before["accuracy"]):
        yield "has left, and does not keep its status and accuracy"
    if not gone and row["status"] == "left":
        yield "has left without meeting its target"
    if row["status"] == "reached" and not met:
        yield f"leaves at an accuracy of {row['accuracy']}, below its target of {service.target_accuracy}"
    if row["status"] == "training" and accuracy > service.target_accuracy + 5e-7:
        yield f"stays at an accuracy of {row['accuracy']}, above its target of {service.target_accuracy}"
    reward = service.reward_base ** min(accuracy, service.target_accuracy)
    # Six decimals of accuracy leave the reward uncertain by ln(Omega) / 2e6 of itself.
    if abs(float(row["reward"]) - reward) > 1e-5 * reward:
        yield f"the reward {row['reward']} is not {service.reward_base}^accuracy = {reward}"


def _money(row: Row, offers: Sequence[Row]) -> Iterator[str]:
    """What a service offered is within its budget (eq. 4), and its row says what its offers came to."""
    served = [offer for offer in offers if offer["outcome"] == "served"]
    offered, spent = (sum(micro(offer["payment"]) for offer in some) for some in (offers, served))
    if offered > micro(row["budget"]):
        yield f"offers of {text(offered)} are over the budget of {row['budget']} (eq. 4)"
    if row["status"] == "left" and offers:
        yield "has left, and makes offers"
    for key, value in (
        ("offered", text(offered)),
        ("spent", text(spent)),
        ("wanted", str(len(offers))),
        ("served", str(len(served))),
        ("refused", str(len(offers) - len(served))),
        ("samples", str(sum(int(offer["data_size"]) for offer in served)) if served else ""),
    ):
        if row[key] != value:
            yield f"{key} is {row[key]}, and its offers come to {value}"
    for key, of in (("mean_emd", "emd"), ("mean_dqi", "dqi"), ("mean_bid", "bid"), ("mean_payment", "payment")):
        if not served:
            if row[key]:
                yield f"{key} is {row[key]} with nobody served"
            continue
        mean = sum(float(offer[of]) for offer in served) / len(served)
        if not row[key] or abs(float(row[key]) - mean) > _CLOSE + (5.1e-7 if of in ("bid", "payment") else 0.0):
            yield f"{key} is {row[key]}, and its offers come to {mean}"


def _events(row: Row, offers: Sequence[Row], events: Sequence[Row]) -> Iterator[str]:
    """The timeline tells the same story: awards, payments, decisions and exits."""

    def told(kind: str) -> list[tuple[str, int]]:
        return sorted((event["client"], micro(event["amount"])) for event in events if event["event"] == kind)

    def logged(*outcomes: str) -> list[tuple[str, int]]:
        return sorted((offer["client"], micro(offer["payment"])) for offer in offers if offer["outcome"] in outcomes)

    if told("award") != logged(*_AWARDED):
        yield "awards in events.csv are not those in offers.csv"
    if told("pay") != logged("served"):
        yield "payments in events.csv are not those of served clients in offers.csv"
    if row["status"] != "left" and [amount for _, amount in told("decision")] != [micro(row["offered"])]:
        yield "its decision in events.csv is not what it offered"
    if any(event["event"] == "exit" for event in events) != (row["status"] == "reached"):
        yield "its exit in events.csv is not in the round in which it reached its target"


def _clock(logs: Logs) -> Iterator[str]:
    """Simulated time never runs backwards, and rounds end no earlier than their events."""
    last = 0.0
    for row in logs.events:
        now = float(row["sim_time"])
        if now < last:
            yield f"round {row['round']}: time runs backwards, from {last} to {now}"
        last = now
    ends = {row["round"]: float(row["sim_time"]) for row in logs.rounds}
    for row in logs.offers:
        if row["end"] and not float(row["start"]) <= float(row["end"]) <= ends.get(row["round"], 0.0):
            yield f"round {row['round']}: {row['service']}: client {row['client']}: works outside of the round"


def micro(amount: str) -> int:
    """Read money, which has exactly six decimals, as micro-units."""
    units, point, decimals = amount.partition(".")
    if not point or len(decimals) != 6:
        raise ValueError(f"{amount!r} is not money with six decimals")
    return int(units + decimals)


def text(amount: int) -> str:
    """Write micro-units as money."""
    return f"{amount // 1_000_000}.{amount % 1_000_000:06d}"


def _read(path: Path, columns: Sequence[str]) -> list[Row]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            if tuple(reader.fieldnames or ()) != tuple(columns):
                raise InputError(f"{path}: does not have the columns that it should")
            rows: list[Row] = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: can't be read: {error}") from error
    if any(None in row or None in row.values() for row in rows):
        raise InputError(f"{path}: has a line with too few or too many values")
    return rows
