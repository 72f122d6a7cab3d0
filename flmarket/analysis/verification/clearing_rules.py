"""The rule of ``flmarket verify`` on mechanisms: a round is cleared again, by the mechanism that cleared it.

Of the paper's all rounds are cleared at once (``offer_rules``). That a mechanism does what its page says is for its own
tests and for ``flmarket certify`` to show.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from des.allocation import NO_CORE
from des.log_records import Kind, Outcome
from des.mechanism import DEFAULT, MECHANISMS, Asks, Book, ClearingError, Mechanism, checked_asks, checked_clearing
from des.money import text as money
from fl.arrays import BoolArray
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.verification.findings import Finding, Rows
from flmarket.core.errors import InputError
from flmarket.core.plugin_errors import plugin_code
from scenarios.file.interventions import mechanisms_over_time
from scenarios.file.schema import Market, Scenario


def clearing(logs: Logs) -> Iterator[Finding]:
    """The served clients and the payments are what the scenario's mechanism makes of the offers, round after round."""
    if logs.behaviour is None or all(logs.conditions(number).paper for number in logs.numbers):
        return
    there: BoolArray = np.any(logs.takes_part.reshape(len(logs.numbers), -1), axis=1)
    rules, mechanism = logs.before.clearing
    for number, world in logs.worlds():
        if rules != (now := logs.conditions(number).scenario.market):
            rules, mechanism = now, _created(now)
        if mechanism is None or not there[number - logs.numbers.start]:
            continue
        try:
            with plugin_code(f"mechanism {type(mechanism).__name__}", ClearingError):
                asks = checked_asks(mechanism, world.bid, world.data_size, number)
                yield from _differences(logs, mechanism, number, asks)
        except ClearingError as error:
            yield Finding(f"round {number}: cannot be cleared again: {error}")
            mechanism = None  # until there is another one
    logs.after.clearing = rules, mechanism


def not_cleared(scenario: Scenario) -> list[str]:
    """Return in words the mechanisms whose rounds cannot be cleared again, as they are not here."""
    used = [it for it in mechanisms_over_time(scenario) if it.mechanism != DEFAULT and _created(it) is None]
    return [f"who is served and paid what, as mechanism {it.mechanism!r} is unknown: load its file" for it in used]


def _created(rules: Market) -> Mechanism | None:
    """Return the mechanism that clears from a round on; None for the paper's, and where it is not here.

    The general rules hold for a plug-in's, too.
    """
    try:
        return None if rules.mechanism == DEFAULT else MECHANISMS.create(rules.mechanism, **rules.options)
    except InputError:
        return None


def _differences(logs: Logs, mechanism: Mechanism, number: int, asks: Asks) -> Iterator[Finding]:
    offers = logs.rows["offers"].where(logs.span_of(number))
    book = _book(logs, number, asks, offers)
    if asks.willing is not None:
        unwilling = ~asks.willing[book.services, book.clients]
        yield from offers.wrong(unwilling, "the client does not serve at the price asked for")
    too_low = book.payments < book.asks
    yield from offers.wrong(too_low, "the payment {payment} is below what the platform asks")
    if mechanism.steps > 1:
        yield from _stepped(logs, mechanism, number, asks)
    found = checked_clearing(mechanism, book, number)
    mechanism.close(book, found)
    won, served = found.core != NO_CORE, offers["outcome"] == Outcome.SERVED
    wanted = {"core": np.where(won, found.core, np.nan), "paid": np.where(served & won, found.price, offers["paid"])}
    yield from offers.differing(wanted, "the mechanism gives it")
    other = won == (offers["outcome"] == Outcome.OUTBID)
    yield from offers.wrong(other, "is {outcome}, but the mechanism says otherwise")


def _stepped(logs: Logs, mechanism: Mechanism, number: int, asks: Asks) -> Iterator[Finding]:
    """Yield what is wrong with the steps of a round: who offers again, and whether it has the money."""
    budgets, events = logs.conditions(number).budgets, logs.rows["events"]
    offers = logs.rows["offers"].where(logs.span_of(number))
    deciding = events.where((events["round"] == number) & (events["event"] == Kind.DECISION))
    service, client, payment = (offers[name].tolist() for name in ("service", "client", "payment"))
    decisions = list(zip(deciding["service"].tolist(), map(int, deciding["amount"].tolist()), strict=True))
    # Offers by their place among the round's: those that a service has still to make, and those that it made.
    waiting = {name: [at for at, of in enumerate(service) if of == name] for name in logs.places}
    made: dict[str, list[int]] = {name: [] for name in logs.places}
    lost: dict[str, set[int]] = {name: set() for name in logs.places}
    active = [name for name in logs.places if name in dict(decisions)]
    asked, step = active, 0
    while decisions:
        step += 1
        now, decisions = decisions[: len(asked)], decisions[len(asked) :]
        if [name for name, _ in now] != asked or not asked or step > mechanism.steps:
            who = ", ".join(asked) or "no service"
            yield Finding(f"round {number}: step {step}: {who} may offer, but others do")
            return
        for name, amount in now:
            left = amount
            while waiting[name] and (left > 0 or payment[waiting[name][0]] == 0):
                left -= payment[waiting[name][0]]
                made[name].append(waiting[name].pop(0))
            held = sum(payment[at] for at in made[name] if client[at] not in lost[name])
            if left or (held > budgets[name] and not mechanism.keeps_budgets):
                what = f"{name} offers {money(amount)}, which it does not have"
                yield Finding(f"round {number}: step {step}: {what}")
                return
        so_far = np.array([at for name in logs.places for at in made[name]], dtype=np.int64)
        book = _book(logs, number, asks, offers.where(so_far))
        refused = so_far[checked_clearing(mechanism, book, number).core == NO_CORE]
        now_lost: dict[str, set[int]] = {name: set() for name in logs.places}
        for at in refused.tolist():
            now_lost[service[at]].add(client[at])
        asked = [name for name in active if now_lost[name] - lost[name]]
        lost = now_lost
    if asked and step < mechanism.steps:
        yield Finding(f"round {number}: step {step + 1}: {', '.join(asked)} may offer, but none does")


def _book(logs: Logs, number: int, asks: Asks, offers: Rows) -> Book:
    services, clients, now = offers["m"], offers["client"], logs.conditions(number)
    budgets, least = np.array([now.budgets[name] for name in logs.places]), asks.least[services, clients]
    return Book(
        services, clients, offers["payment"], offers["bid"], least, budgets, now.cores, partial(logs.tie_order, number)
    )
