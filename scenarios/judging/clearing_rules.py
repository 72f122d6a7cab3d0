"""The rule of ``flmarket verify`` on mechanisms: a round is cleared again, by the mechanism that cleared it.

The paper's mechanism is checked by rules of their own, which share no code with the market (``offer_rules``). Of the
others this rule can say that the logs are what the mechanism makes of the offers; that the mechanism does what its page
says is for its own tests and for ``flmarket certify`` to show.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from des.allocation import NO_CORE, tie_order_of
from des.log_records import Kind, Outcome
from des.mechanism import DEFAULT, Asks, Book, Clearing, ClearingError, Mechanism, ask, clear, create
from des.money import text as money
from des.money import to_micro
from fl.arrays import FloatArray, IntArray
from flmarket.core.errors import InputError
from flmarket.core.plugin_errors import plugin_code
from scenarios.file.interventions import mechanisms_over_time
from scenarios.file.schema import Market
from scenarios.judging.evidence import Logs, Row
from scenarios.judging.slots import AWARDED
from scenarios.judging.wording import at_client


def clearing(logs: Logs) -> Iterator[str]:
    """Who is served and what is paid is what the scenario's mechanism makes of the offers, round after round."""
    others = [rules for rules in mechanisms_over_time(logs.scenario) if rules.mechanism != DEFAULT]
    if not others or not logs.known or logs.behaviour is None:
        return
    rules, mechanism = None, None
    for number, drawn in logs.worlds():
        if rules != (now := logs.conditions(number).market):
            rules, mechanism = now, _created(now)
        if mechanism is None:
            continue
        rows = logs.offers_in.get(number, [])
        known = (row["service"] in logs.places and 0 <= row["client"] < logs.scenario.clients.count for row in rows)
        if not all(known):
            return  # the rule ``shape`` names it
        if not any(row["status"].takes_part for row in logs.rows_of[number]):
            continue  # nobody is there: nothing was cleared
        try:
            with plugin_code(f"mechanism {type(mechanism).__name__}", ClearingError):
                asks = ask(mechanism, drawn.bid, drawn.data_size, number)
                yield from _asked(logs, asks, rows)
                if mechanism.steps > 1:
                    yield from _stepped(logs, mechanism, number, asks, rows)
                book = _book(logs, number, asks, rows)
                cleared = clear(mechanism, book, number)
                mechanism.close(book, cleared)
                yield from _compared(rows, cleared)
        except ClearingError as error:
            yield f"round {number}: cannot be cleared again: {error}"
            return


def _created(rules: Market) -> Mechanism | None:
    """Return the mechanism that clears from a round on; None for the paper's, and where it is not here.

    The general rules hold for a plug-in's, too.
    """
    try:
        return None if rules.mechanism == DEFAULT else create(rules.mechanism, rules.options)
    except InputError:
        return None


def _asked(logs: Logs, asks: Asks, rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        place = logs.places[row["service"]], row["client"]
        if asks.willing is not None and not asks.willing[place]:
            yield f"{at_client(row)}: the client does not serve at the price asked for"
        elif row["payment"] < asks.least[place]:
            yield f"{at_client(row)}: the payment {money(row['payment'])} is below {money(int(asks.least[place]))}"


def _stepped(logs: Logs, mechanism: Mechanism, number: int, asks: Asks, rows: Sequence[Row]) -> Iterator[str]:
    """Yield what is wrong with the steps of a round: who offers again, and whether it has the money."""
    budgets = {name: to_micro(budget) for name, budget in logs.conditions(number).budgets.items()}
    waiting = {name: [row for row in rows if row["service"] == name] for name in logs.places}
    decisions = [row for row in logs.events_in.get(number, []) if row["event"] is Kind.DECISION]
    active = [name for name in logs.places if any(row["service"] == name for row in decisions)]
    made: dict[str, list[Row]] = {name: [] for name in logs.places}
    lost: dict[str, set[int]] = {name: set() for name in logs.places}
    asked, step = active, 0
    while decisions:
        step += 1
        now, decisions = decisions[: len(asked)], decisions[len(asked) :]
        if [row["service"] for row in now] != asked or not asked or step > mechanism.steps:
            yield f"round {number}: step {step}: {', '.join(asked) or 'nobody'} may offer, but others do"
            return
        for row in now:
            name, left = row["service"], row["amount"] or 0
            while waiting[name] and (left > 0 or (waiting[name][0]["payment"] == 0)):
                left -= waiting[name][0]["payment"]
                made[name].append(waiting[name].pop(0))
            held = sum(one["payment"] for one in made[name] if one["client"] not in lost[name])
            if left or (held > budgets[name] and not mechanism.keeps_budgets):
                yield f"round {number}: step {step}: {name} offers {money(row['amount'] or 0)}, which it does not have"
                return
        so_far = [row for name in logs.places for row in made[name]]
        core = clear(mechanism, _book(logs, number, asks, so_far), number).core.tolist()
        refused: dict[str, set[int]] = {name: set() for name in logs.places}
        for row, place in zip(so_far, core, strict=True):
            if place == NO_CORE:
                refused[row["service"]].add(row["client"])
        asked = [name for name in active if refused[name] - lost[name]]
        lost = refused
    if asked and step < mechanism.steps:
        yield f"round {number}: step {step + 1}: {', '.join(asked)} may offer, but nobody does"


def _book(logs: Logs, number: int, asks: Asks, rows: Sequence[Row]) -> Book:
    services = np.array([logs.places[row["service"]] for row in rows], dtype=np.int64)
    clients = np.array([row["client"] for row in rows], dtype=np.int64)
    budgets = logs.conditions(number).budgets

    def tie_order(client: int | IntArray) -> FloatArray:
        return tie_order_of(logs.ties, number, len(logs.places), client)

    return Book(
        services,
        clients,
        np.array([row["payment"] for row in rows], dtype=np.int64),
        np.array([row["bid"] for row in rows], dtype=np.int64),
        asks.least[services, clients],
        np.array([to_micro(budgets[name]) for name in logs.places], dtype=np.int64),
        logs.conditions(number).cores,
        tie_order,
    )


def _compared(rows: Sequence[Row], cleared: Clearing) -> Iterator[str]:
    """Yield offers with another outcome, core or price than the mechanism gives them."""
    for row, core, price in zip(rows, cleared.core.tolist(), cleared.price.tolist(), strict=True):
        won = core != NO_CORE
        if (row["outcome"] in AWARDED) != won or row["core"] != (core if won else None):
            wanted = f"core {core}" if won else "no core"
            yield f"{at_client(row)}: wins {wanted}, but the offer is {row['outcome']}, core {row['core']}"
        elif row["outcome"] is Outcome.SERVED and row["paid"] != price:
            yield f"{at_client(row)}: was paid {money(row['paid'] or 0)}, but the price is {money(price)}"
