"""The rules of ``flmarket verify`` on rows of rounds.csv, and on the order of all rows."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from des.log_records import Outcome
from des.money import MICRO, Micro, to_micro
from des.money import text as money
from des.observation import Status
from fl.elementary import power, rounded
from scenarios.file.schema import Service
from scenarios.judging.evidence import Logs, Row
from scenarios.judging.wording import at_client, place
from scenarios.logs.columns import ROUNDS

_SIX_DECIMALS = 5e-7  # half a unit of the last decimal of an accuracy


def shape(logs: Logs) -> Iterator[str]:
    """Each round from 1 has one row for each service, in the scenario's order, until the run ends; offers follow it."""
    names = [service.name for service in logs.scenario.services]
    found = [(row["round"], row["service"]) for row in logs.rounds]
    count = len(logs.rounds) // len(names)
    if not count:
        yield "rounds.csv has no round"
    if found != [(n, name) for n in range(1, count + 1) for name in names]:
        yield "rounds.csv does not have one row for each round and service, in order"
    last = logs.rounds[-len(names) :]
    if count != logs.scenario.rounds and not all(row["status"].gone for row in last):
        yield f"the run ends after round {count} of {logs.scenario.rounds}, but not all services have left"
    for number in logs.numbers[:-1]:
        if all(row["status"].gone for row in logs.rows_of[number]):
            yield f"the run does not end after round {number}, when all services have left"
    if logs.meta.get("rounds", count) != count:
        yield f"rounds.csv has {count} rounds, but meta.json records {logs.meta['rounds']!r}"
    known = set(found)
    for where in sorted({*logs.offers_of} - known) + sorted({key for key in logs.events_of if key[1]} - known):
        yield f"round {where[0]}: {where[1]}: has offers or events, but no row in rounds.csv"
    for name, rows in (("offers", logs.offers), ("events", logs.events)):
        order = [(row["round"], logs.places.get(row["service"], 0) if name == "offers" else 0) for row in rows]
        for line, (one, other) in enumerate(pairwise(order), start=3):
            if one > other:
                yield f"{name}.csv, line {line}: the row is out of order"


def scenario(logs: Logs) -> Iterator[str]:
    """Data sets, policies, targets, budgets, clients and data sizes are the scenario's; no client is wanted offline."""
    services = {service.name: service for service in logs.scenario.services}
    for row in logs.rounds:
        service = services.get(row["service"])
        if service is None:
            yield f"{place(row)}: unknown service"
            continue
        now = logs.conditions(row["round"])
        player, budget = now.services[service.name], now.budgets[service.name]
        if row["budget"] != to_micro(budget):
            yield f"{place(row)}: the budget {money(row['budget'])} is not the scenario's {budget}"
        if row["target_accuracy"] != _logged("target_accuracy", service.target_accuracy):
            yield f"{place(row)}: the target {row['target_accuracy']} is not the scenario's {service.target_accuracy}"
        for key, wanted in (("dataset", service.dataset), ("policy", player.policy)):
            if row[key] != wanted:
                yield f"{place(row)}: the {key} {row[key]!r} is not the scenario's {wanted!r}"
    clients = logs.scenario.clients
    sizes = clients.data_size if logs.behaviour is None or not logs.behaviour.misreports else logs.population.data_sizes
    for row in logs.offers:
        if row["data_size"] not in sizes and logs.behaviour is not None:
            yield f"{at_client(row)}: a data size of {row['data_size']} is not in the scenario"
        if not 0 <= row["client"] < clients.count:
            yield f"{at_client(row)}: unknown client; clients are 0 to {clients.count - 1}"
        if row["client"] in logs.conditions(row["round"]).offline:
            yield f"{at_client(row)}: is offline, but is wanted"


def progress(logs: Logs) -> Iterator[str]:
    """A service trains until it meets its target, then leaves and keeps its accuracy; the reward is Omega^accuracy."""
    for service in logs.scenario.services:
        before: Row | None = None
        for row in logs.rounds:
            if row["service"] == service.name:
                for problem in (
                    *_step(service, before, row),
                    *_accuracy(logs, service, before, row),
                    *_test_accuracy(logs, before, row),
                ):
                    yield f"{place(row)}: {problem}"
                before = row


def _step(service: Service, before: Row | None, row: Row) -> Iterator[str]:
    accuracy, status, target = row["accuracy"], row["status"], service.target_accuracy
    gone = before is not None and before["status"].gone
    if not gone and (status is Status.WAITING) != (row["round"] < service.arrival):
        yield f"is {status}, but arrives in round {service.arrival}"
    # Logged accuracies have six decimals, and the target may have more.
    if gone and (status is not Status.LEFT or before is None or accuracy != before["accuracy"]):
        yield "has left, but does not keep its status and accuracy"
    if not gone and status is Status.LEFT:
        yield "has left without meeting its target"
    if status is Status.REACHED and accuracy < target - _SIX_DECIMALS:
        yield f"leaves at an accuracy of {accuracy:.6f}, below its target of {target}"
    if status is Status.TRAINING and accuracy > target + _SIX_DECIMALS:
        yield f"stays at an accuracy of {accuracy:.6f}, above its target of {target}"
    if before is not None and not row["served"] and accuracy != before["accuracy"]:
        yield f"nobody was served, but the accuracy changes from {before['accuracy']:.6f} to {accuracy:.6f}"


def _accuracy(logs: Logs, service: Service, before: Row | None, row: Row) -> Iterator[str]:
    """Yield what is wrong with an accuracy as a share of images (or a point of its curve), and with the reward."""
    accuracy, target = row["accuracy"], service.target_accuracy
    exact = logs.exact_accuracy(row)
    if exact is not None and accuracy != _logged("accuracy", exact):
        if (row["round"], service.name) in logs.learned:
            yield f"the accuracy {accuracy:.6f} is not that of the learning curve, {exact:.6f}"
        else:
            kind = "validation" if logs.scenario.split else "test"
            yield f"the accuracy {accuracy:.6f} is not a share of {logs.data.measured[service.name]} {kind} images"
    if not 0.0 <= accuracy <= 1.0:
        yield f"the accuracy {accuracy:.6f} is not between 0 and 1"
        return
    if row["status"] is Status.WAITING:
        if row["reward"] != 0:
            yield f"the reward {row['reward']} is not 0 before it arrives"
        return
    if exact is not None and (exact >= target) != row["status"].gone:
        yield f"is {row['status']} at an accuracy of {exact}, with a target of {target}"
    # Six decimals do not tell the exact accuracy; where nothing else does, they leave a range of rewards.
    near = (accuracy - _SIX_DECIMALS, accuracy + _SIX_DECIMALS) if exact is None else (exact, exact)
    if row["status"].gone:
        near = target, target
    low, high = (rounded(power(service.reward_base, min(max(value, 0.0), target))) for value in near)
    if not low <= row["reward"] <= high:
        wanted = low if low == high else f"{low} to {high}"
        yield f"the reward {row['reward']} is not {service.reward_base}^accuracy = {wanted}"
    arrived = before is not None and before["status"] is not Status.WAITING
    held = before is not None and arrived and not row["served"] and accuracy == before["accuracy"]
    if held and before is not None and row["reward"] != before["reward"]:
        yield f"nobody was served, but the reward changes from {before['reward']} to {row['reward']}"


def _test_accuracy(logs: Logs, before: Row | None, row: Row) -> Iterator[str]:
    accuracy = row["test_accuracy"]
    if not logs.scenario.split:
        if accuracy != row["accuracy"]:
            yield f"the test accuracy {accuracy:.6f} is not the accuracy {row['accuracy']:.6f}; no images are held out"
        return
    tested = logs.data.tested.get(row["service"])
    if tested is not None and accuracy != _logged("test_accuracy", round(accuracy * tested) / tested):
        yield f"the test accuracy {accuracy:.6f} is not a share of {tested} test images"
    if not 0.0 <= accuracy <= 1.0:
        yield f"the test accuracy {accuracy:.6f} is not between 0 and 1"
    if before is not None and not row["served"] and accuracy != before["test_accuracy"]:
        yield f"nobody was served, but the test accuracy changes from {before['test_accuracy']:.6f} to {accuracy:.6f}"


def totals(logs: Logs) -> Iterator[str]:
    """Each row of rounds.csv says what the service's offers come to, and they are within its budget (eq. 4)."""
    for row in logs.rounds:
        offers = logs.offers_of.get((row["round"], row["service"]), [])
        served = [offer for offer in offers if offer["outcome"] is Outcome.SERVED]
        offered: Micro = sum(offer["payment"] for offer in offers)
        # Other mechanisms than the paper's may let services offer again, or name what clients are worth.
        if offered > row["budget"] and logs.conditions(row["round"]).paper:
            yield f"{place(row)}: offers of {money(offered)} are over the budget of {money(row['budget'])} (eq. 4)"
        if not row["status"].takes_part and offers:
            yield f"{place(row)}: {'has left' if row['status'].gone else 'has not arrived'}, but makes offers"
        spent: Micro = sum(offer["paid"] or 0 for offer in served)
        if spent > row["budget"]:
            yield f"{place(row)}: spent {money(spent)}, over the budget of {money(row['budget'])} (eq. 4)"
        for key, value in (("offered", offered), ("spent", spent)):
            if row[key] != value:
                yield f"{place(row)}: {key} is {money(row[key])}, but its offers come to {money(value)}"
        counts = {"wanted": len(offers), "served": len(served), "refused": len(offers) - len(served)}
        expected: dict[str, float | None] = {**counts, **_over_served(served)}
        for key, amount in expected.items():
            if row[key] != _logged(key, amount):
                yield f"{place(row)}: {key} is {row[key]}, but its offers come to {amount}"


def _over_served(served: Sequence[Row]) -> Mapping[str, float | None]:
    """Return what rounds.csv says of served clients, None where there are none."""
    if not served:
        return dict.fromkeys(("samples", "mean_emd", "mean_dqi", "mean_bid", "mean_payment", "makespan"))
    starts, ends = ([offer[key] or 0.0 for offer in served] for key in ("start", "end"))
    return {
        "samples": sum(offer["data_size"] for offer in served),
        "mean_emd": math.fsum(offer["emd"] for offer in served) / len(served),
        "mean_dqi": math.fsum(offer["dqi"] for offer in served) / len(served),
        "mean_bid": math.fsum(offer["bid"] / MICRO for offer in served) / len(served),
        "mean_payment": math.fsum((offer["paid"] or 0) / MICRO for offer in served) / len(served),
        "makespan": max(ends) - min(starts),
    }


def _logged(key: str, value: float | None) -> float | None:
    """Return a value of rounds.csv as it reads after it was written."""
    return None if value is None else ROUNDS[key].read(ROUNDS[key].write(value))
