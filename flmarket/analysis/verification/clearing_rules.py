"""The rule of ``flmarket verify`` on mechanisms: a round is cleared again, by the mechanism that cleared it.

The paper's mechanism is checked by rules of their own, which share no code with the market (``offer_rules``). Of the
others this rule can say that the logs are what the mechanism makes of the offers; that the mechanism does what its page
says is for its own tests and for ``flmarket certify`` to show.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from des.allocation import NO_CORE, tie_order_of
from des.log_records import Kind, Outcome
from des.mechanisms.mechanism import DEFAULT, Asks, Book, ClearingError, Mechanism, ask, clear, create
from des.money import text as money
from des.money import to_micro
from des.observation import Status
from fl.arrays import FloatArray, IntArray
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.verification.findings import differing, wrong
from flmarket.core.errors import InputError
from flmarket.core.plugin_errors import plugin_code
from scenarios.file.interventions import mechanisms_over_time
from scenarios.file.schema import Market


def clearing(logs: Logs) -> Iterator[str]:
    """The served clients and the payments are what the scenario's mechanism makes of the offers, round after round."""
    others = [rules for rules in mechanisms_over_time(logs.scenario) if rules.mechanism != DEFAULT]
    if not others or not logs.known or logs.behaviour is None:
        return
    there = set(logs.rounds["round"][~logs.rounds["status"].isin([Status.LEFT, Status.WAITING])])
    rules, mechanism = None, None
    for number, drawn in logs.worlds():
        if rules != (now := logs.conditions(number).market):
            rules, mechanism = now, _created(now)
        if mechanism is None or number not in there:
            continue
        try:
            with plugin_code(f"mechanism {type(mechanism).__name__}", ClearingError):
                asks = ask(mechanism, drawn.bid, drawn.data_size, number)
                yield from _cleared(logs, mechanism, number, asks)
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


def _cleared(logs: Logs, mechanism: Mechanism, number: int, asks: Asks) -> Iterator[str]:
    rows = logs.offers_of(number)
    book = _book(logs, number, asks, rows)
    if asks.willing is not None:
        unwilling = ~asks.willing[book.services, book.clients]
        yield from wrong(rows, unwilling, "the client does not serve at the price asked for")
    yield from wrong(rows, book.payments < book.asks, "the payment {payment} is below what the platform asks")
    if mechanism.steps > 1:
        yield from _stepped(logs, mechanism, number, asks)
    found = clear(mechanism, book, number)
    mechanism.close(book, found)
    won, served = found.core != NO_CORE, rows["outcome"] == Outcome.SERVED
    wanted = {"core": np.where(won, found.core, np.nan), "paid": np.where(served & won, found.price, rows["paid"])}
    yield from differing(rows, pd.DataFrame(wanted), "the mechanism gives it")
    yield from wrong(rows, won != (rows["outcome"] != Outcome.OUTBID), "is {outcome}, but the mechanism says otherwise")


def _stepped(logs: Logs, mechanism: Mechanism, number: int, asks: Asks) -> Iterator[str]:
    """Yield what is wrong with the steps of a round: who offers again, and whether it has the money."""
    budgets = {name: to_micro(budget) for name, budget in logs.conditions(number).budgets.items()}
    rows, events = logs.offers_of(number), logs.events[logs.events["round"] == number]
    payments, clients = rows["payment"].to_numpy(), rows["client"].to_numpy()
    # Offers by their place among the round's: those that a service has still to make, and those that it made.
    waiting = {name: np.flatnonzero(rows["service"] == name).tolist() for name in logs.places}
    made: dict[str, list[int]] = {name: [] for name in logs.places}
    lost: dict[str, set[int]] = {name: set() for name in logs.places}
    offered = events[events["event"] == Kind.DECISION]
    decisions = list(zip(offered["service"], offered["amount"].fillna(0).astype(np.int64), strict=True))
    active = [name for name in logs.places if name in set(offered["service"])]
    asked, step = active, 0
    while decisions:
        step += 1
        now, decisions = decisions[: len(asked)], decisions[len(asked) :]
        if [name for name, _ in now] != asked or not asked or step > mechanism.steps:
            yield f"round {number}: step {step}: {', '.join(asked) or 'no service'} may offer, but others do"
            return
        for name, amount in now:
            left = amount
            while waiting[name] and (left > 0 or payments[waiting[name][0]] == 0):
                left -= payments[waiting[name][0]]
                made[name].append(waiting[name].pop(0))
            held = sum(payments[at] for at in made[name] if clients[at] not in lost[name])
            if left or (held > budgets[name] and not mechanism.keeps_budgets):
                yield f"round {number}: step {step}: {name} offers {money(amount)}, which it does not have"
                return
        so_far = [at for name in logs.places for at in made[name]]
        refused = rows.iloc[so_far][
            clear(mechanism, _book(logs, number, asks, rows.iloc[so_far]), number).core == NO_CORE
        ]
        now_lost = {name: set(refused.loc[refused["service"] == name, "client"]) for name in logs.places}
        asked = [name for name in active if now_lost[name] - lost[name]]
        lost = now_lost
    if asked and step < mechanism.steps:
        yield f"round {number}: step {step + 1}: {', '.join(asked)} may offer, but none does"


def _book(logs: Logs, number: int, asks: Asks, rows: pd.DataFrame) -> Book:
    services = np.array(rows["service"].map(logs.places), dtype=np.int64)
    clients = np.array(rows["client"], dtype=np.int64)
    now = logs.conditions(number)

    def tie_order(client: int | IntArray) -> FloatArray:
        return tie_order_of(logs.ties, number, len(logs.places), client)

    return Book(
        services,
        clients,
        rows["payment"].to_numpy(),
        rows["bid"].to_numpy(),
        asks.least[services, clients],
        np.array([to_micro(now.budgets[name]) for name in logs.places], dtype=np.int64),
        now.cores,
        tie_order,
    )
