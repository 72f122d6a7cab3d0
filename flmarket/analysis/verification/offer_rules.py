"""The rules of ``flmarket verify`` on offers: what clients have and ask, who serves whom, and what that costs.

A round is cleared again by the mechanism that cleared it; those of the paper's are all cleared at once. That a
mechanism does what its page says is for its own tests and for ``flmarket certify`` to show.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from des.allocation import NO_CORE, allocate
from des.clients.population import Qualities
from des.log_records import Kind, Outcome
from des.mechanism import (
    DEFAULT,
    MECHANISMS,
    Asks,
    Book,
    ClearingError,
    Fates,
    Mechanism,
    RoundView,
    asks_of,
    clearing_of,
    known,
    learn,
    menu_of,
    record_of,
    settlements_of,
)
from des.money import MICRO, part_of, to_micro
from des.money import text as money
from des.response import Answers, ResponseError
from fl.arrays import AnyArray, BoolArray, IntArray, read_only
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.verification.findings import Finding, Rows
from flmarket.core.errors import InputError
from flmarket.core.plugin_errors import plugin_code
from scenarios.file.interventions import mechanisms_over_time
from scenarios.file.schema import Market, Scenario

_SEED = "the run's seed draws"


def world(logs: Logs) -> Iterator[Finding]:
    """Data sizes, EMDs, DQI and bids are those that the run's seed draws for the round, the service and the client."""
    if logs.behaviour is None:
        return  # the rule ``interests`` holds what the client has against the draw
    (drawn, lowest), events = logs.drawn, logs.rows["events"]
    wanted = {name: drawn[name] for name in ("data_size", "emd", "dqi", "bid")}
    yield from logs.rows["offers"].differing(wanted, _SEED)
    asked = events.where((events["event"] == Kind.BID) & (events["m"] >= 0))
    yield from asked.differing({"amount": lowest[logs.places_of(asked)]}, "the lowest bid of the round is")


def interests(logs: Logs) -> Iterator[Finding]:
    """Rows of clients.csv are those of offers.csv; the truth in them is what the seed draws, and the profit adds up."""
    if logs.clients is None:
        return
    clients, offers, (drawn, _) = logs.rows["clients"], logs.rows["offers"], logs.drawn
    if not np.array_equal(clients["round"], offers["round"]):
        yield Finding("clients.csv does not have one row for each row of offers.csv, in order")
        return
    same = {name: offers[name] for name in ("service", "client", "bid", "paid")}
    same |= {"reported_size": offers["data_size"], "reported_emd": offers["emd"]}
    yield from clients.differing(same, "offers.csv has")
    yield from clients.differing({"profit": clients["paid"] - clients["cost"]}, "what it was paid less its cost is")
    truth = {"data_size": drawn["held_data_size"], "emd": drawn["held_emd"]}
    if logs.has_costs:  # of what clients do of an award, the rule ``cores`` knows
        whole = offers["outcome"] == Outcome.OUTBID if logs.responses is not None else np.ones(len(offers), np.bool_)
        truth["cost"] = np.where(whole, drawn["cost"], clients["cost"])
    yield from clients.differing(truth, _SEED)


def responses(logs: Logs) -> Iterator[Finding]:
    """Clients do at most what they promise, and decline where that is nothing; the rule ``cores`` has their answers."""
    answers, offers = logs.rows.get("responses"), logs.answered
    if answers is not None:
        promised, done = answers["promised"], answers["done"]
        wrong = (promised < 0) | (promised > MICRO) | (done > promised) | ((done <= 0) != (promised <= 0))
        yield from answers.wrong(wrong, "cannot promise {promised} and do {done}")
    declined = offers["outcome"] == Outcome.DECLINED
    yield from offers.wrong(declined != (offers["promised"] == 0), "is {outcome}, which is not what it answered")


def payments(logs: Logs) -> Iterator[Finding]:
    """Payments and prices are at least the bid (eq. 5), prices at most the payment; only served clients are paid.

    A part of the work has a part of these. A mechanism may say that prices can be below the bid, or post a menu. By
    contracts, whoever has served is hired at the same price and core, whatever it bids later, and nobody else has it.
    """
    yield from _contracts(logs)
    offers = logs.answered
    bid, payment, paid = offers["bid"], offers["payment"], offers["paid"]
    asked, offered = (part_of(amount, offers["promised"]) for amount in (bid, payment))
    yield from offers.wrong(bid < 0, "the bid {bid} is negative (eq. 5)")
    yield from offers.wrong((payment < bid) & ~logs.hired.rows, "the payment {payment} is below the bid {bid} (eq. 5)")
    served = offers["outcome"] == Outcome.SERVED
    yield from offers.wrong(np.isnan(paid) == served, "was {outcome}, but was paid {paid}")
    at_least_bids = logs.by_round(offers, lambda now: keeps_bids(now.scenario.market.mechanism)) & ~logs.hired.rows
    yield from offers.wrong((paid < asked) & at_least_bids, "was paid {paid}, below its bid {bid} (eq. 5)")
    other = (paid > payment) | (logs.by_round(offers, lambda now: now.paper) & (paid != offered) & served)
    yield from offers.wrong(other, "was paid {paid}, but the payment offered is {payment}")


def _contracts(logs: Logs) -> Iterator[Finding]:
    offers, hired = logs.rows["offers"], logs.hired
    rows, price = offers.where(hired.rows), hired.price[hired.rows]
    wanted = {"payment": price, "paid": np.where(np.isnan(rows["paid"]), np.nan, price), "core": hired.core[hired.rows]}
    yield from rows.differing(wanted, "by its contract it should be")
    yield from offers.wrong(hired.taken, "the client is under a contract, but gets an offer")
    names = list(logs.places)
    for number, it in hired.missing:
        who = f"round {number}, {names[it.service]}, client {it.client}"
        yield Finding(f"{who}: is hired by a contract, but offers.csv has no row of it")


def cores(logs: Logs) -> Iterator[Finding]:
    """A client serves at most K services, one on each core (eq. 2): the highest payments, or the mechanism's choice."""
    yield from clearing(logs)
    if logs.scenario.market.sequential:
        for number in logs.numbers:
            yield from _in_turn(logs, number)
    offers, core = logs.rows["offers"], logs.rows["offers"]["core"]
    yield from offers.wrong(_repeated(offers, "m"), "the service makes the client two offers")
    available, won, hired = _available(logs, offers), offers["outcome"] != Outcome.OUTBID, logs.hired.rows
    placed = (core >= 0) & ((core < available) | hired) & ~_repeated(offers, "core")
    yield from offers.wrong(won & ~placed, "the client's cores are not used once each (eq. 2)")
    works = ~np.isnan([core, offers["start"], offers["end"]]).all(axis=0)
    yield from offers.wrong(~won & works, "was outbid, but has a core, a start or an end")
    paper = logs.by_round(offers, lambda now: now.paper) & ~hired
    of_paper, right = offers.where(paper), _highest(logs, offers.where(paper), available[paper])
    wins = right != NO_CORE
    yield from of_paper.where(wins).differing({"core": right[wins]}, "by its payment it should be")
    yield from of_paper.wrong(~wins & won[paper], "was {outcome}, but others pay the client more")


def _in_turn(logs: Logs, number: int) -> Iterator[Finding]:
    """Yield what is wrong with the decisions on clients that come one after another, and with the money for them."""
    now, offers, events = logs.conditions(number), logs.made_in(number), logs.rows["events"]
    turns = logs.turns(number)
    begin = (number - logs.numbers.start) * len(logs.places)
    active = [name for name, m in logs.places.items() if logs.takes_part[begin + m]]
    # Of those that are not paid, or in part, the price is not known beyond the bid.
    price = offers["payment"] if now.paper else np.where(np.isnan(offers["paid"]), offers["bid"], offers["paid"])
    spent = np.where(offers["outcome"] == Outcome.OUTBID, 0, price)
    columns = (it.tolist() for it in (offers["service"], offers["client"], offers["payment"], spent))
    made = {(service, client): amounts for service, client, *amounts in zip(*columns, strict=True)}
    if list(made) != [(name, client) for name in logs.places for client in turns if (name, client) in made]:
        yield Finding(f"round {number}: offers are not in the order in which clients come")
    left, wanted = dict(now.free), []
    for client in turns or [-1]:  # where nobody comes, services decide once all the same
        for name in active:
            payment, cost = made.get((name, client), (0, 0))
            wanted.append((name, payment))
            if payment > left[name]:
                yield Finding(
                    f"round {number}, {name}, client {client}: offers {money(payment)}, which it does not have"
                )
            left[name] -= cost
    decisions = events.where((events["round"] == number) & (events["event"] == Kind.DECISION))
    if list(zip(decisions["service"].tolist(), decisions["amount"].tolist(), strict=True)) != wanted:
        yield Finding(f"round {number}: services do not decide on one client after another, as they offer")


def _available(logs: Logs, offers: Rows) -> IntArray:
    """Return how many cores the client of each offer has."""
    available: IntArray = logs.by_round(offers, lambda now: now.cores)
    for number in logs.numbers:
        if (own := logs.conditions(number).cores_of) is not None:
            available[logs.span_of(number)] = own[offers["client"][logs.span_of(number)]]
    return available


def _repeated(offers: Rows, column: str) -> AnyArray:
    """Return whether a client of one round had the same in an earlier row."""
    return pd.MultiIndex.from_arrays([offers[name] for name in ("round", "client", column)]).duplicated()


def _highest(logs: Logs, offers: Rows, available: IntArray) -> IntArray:
    """Return the core that each of some offers gets by its payment, of all rounds at once; NO_CORE if it is outbid."""
    clients = logs.scenario.clients.count
    of_client = offers["round"] * clients + offers["client"]  # a client of one round
    core = np.empty(len(offers), dtype=np.int64)
    for cores in np.unique(available).tolist():
        rows = available == cores
        columns = offers["m"][rows], of_client[rows], offers["payment"][rows]
        core[rows] = allocate(*columns, cores, lambda of: logs.tie_order(of // clients, of % clients))
    return core


def clearing(logs: Logs) -> Iterator[Finding]:
    """The served clients and the payments are what the scenario's mechanism makes of the offers, round after round."""
    paper = all(logs.conditions(number).paper for number in logs.numbers)
    if logs.behaviour is None or not logs.has_response or (paper and logs.responses is None):
        return
    there: BoolArray = np.any(logs.takes_part.reshape(len(logs.numbers), -1), axis=1)
    rules, mechanism = logs.before.clearing
    for number, world in logs.worlds():
        if rules != (now := logs.conditions(number).scenario.market):
            rules, mechanism = now, _created(now, paper=logs.responses is not None)
        if mechanism is None or not there[number - logs.numbers.start]:
            continue
        try:
            with plugin_code(f"mechanism {type(mechanism).__name__}", ClearingError):
                asks = asks_of(mechanism, world.bid, world.data_size, number)
                yield from _differences(logs, mechanism, number, asks, world)
        except (ClearingError, ResponseError) as error:
            yield Finding(f"round {number}: cannot be cleared again: {error}")
            mechanism = None  # until there is another one
    logs.after.clearing = rules, mechanism


def not_cleared(scenario: Scenario) -> list[str]:
    """Return in words the mechanisms whose rounds cannot be cleared again, as they are not here."""
    used = [it for it in mechanisms_over_time(scenario) if it.mechanism != DEFAULT and _created(it) is None]
    return [f"who is served and paid what, as mechanism {it.mechanism!r} is unknown: load its file" for it in used]


def keeps_bids(mechanism: str) -> bool:
    """Return whether a mechanism is known to pay who delivered at least the bid."""
    kind = known(mechanism)
    return kind is not None and not kind.below_bid and kind.menu is Mechanism.menu


def _created(rules: Market, *, paper: bool = False) -> Mechanism | None:
    """Return the mechanism that clears from a round on; None where it is not here, or, unless asked, the ``paper``'s.

    The general rules hold for a plug-in's, too.
    """
    try:
        return None if rules.mechanism == DEFAULT and not paper else MECHANISMS.create(rules.mechanism, **rules.options)
    except InputError:
        return None


def _differences(logs: Logs, mechanism: Mechanism, number: int, asks: Asks, world: Qualities) -> Iterator[Finding]:
    offers = logs.made_in(number)
    book = _book(logs, mechanism, number, asks, offers, world)
    if asks.willing is not None:
        unwilling = ~asks.willing[book.services, book.clients]
        yield from offers.wrong(unwilling, "the client does not serve at the price asked for")
    too_low = book.payments < book.asks
    yield from offers.wrong(too_low, "the payment {payment} is below what the platform asks")
    if mechanism.steps > 1:
        yield from _stepped(logs, mechanism, number, asks, world)
    cleared = clearing_of(mechanism, book, number)
    won, served = cleared.core != NO_CORE, offers["outcome"] == Outcome.SERVED
    before, after = logs.accuracies_after(number - 1), logs.accuracies_after(number)
    prices, parts = cleared.price, (offers["promised"], offers["done"])
    if logs.responses is not None and (terms := logs.population.spec.response) is not None:
        places = book.services[won], book.clients[won]
        menu = menu_of(mechanism, book, cleared, number)
        answers = logs.population.answers(terms, world.held, places, cleared.price[won], menu)
        prices = prices.copy()
        prices[won] = answers.payment
        yield from _other_answers(logs, offers.where(won), answers)
    prices, deliveries = settlements_of(mechanism, book, cleared, prices, Fates(served, *parts), before, after, number)
    learn(mechanism, book, cleared, deliveries)
    wanted = {
        "core": np.where(won, cleared.core, np.nan),
        "paid": np.where(served & won, prices, offers["paid"]),
    }
    yield from offers.differing(wanted, "the mechanism gives it")
    other = won == (offers["outcome"] == Outcome.OUTBID)
    yield from offers.wrong(other, "is {outcome}, but the mechanism says otherwise")


def _other_answers(logs: Logs, awarded: Rows, answers: Answers) -> Iterator[Finding]:
    """Yield what clients did not answer to awards, and costs that are not those of what they did."""
    for name, right in (("promised", answers.promised), ("done", answers.done)):
        yield from awarded.wrong(awarded[name] != right, f"the client's answer is not what responses.csv says ({name})")
    if logs.clients is not None and len(awarded):
        costs = logs.rows["clients"]["cost"][awarded["line"] - logs.rows["offers"]["line"][0]]
        yield from awarded.wrong(costs != answers.cost, "clients.csv does not have the cost of what the client does")


def _stepped(logs: Logs, mechanism: Mechanism, number: int, asks: Asks, world: Qualities) -> Iterator[Finding]:
    """Yield what is wrong with the steps of a round: who offers again, and whether it has the money."""
    budgets, events, offers = logs.conditions(number).free, logs.rows["events"], logs.made_in(number)
    deciding = events.where((events["round"] == number) & (events["event"] == Kind.DECISION))
    service, client, payment = (offers[name].tolist() for name in ("service", "client", "payment"))
    decisions = list(zip(deciding["service"].tolist(), map(int, deciding["amount"].tolist()), strict=True))
    # Offers by their place among the round's: those that a service has still to make, and those that it made.
    waiting = {name: [at for at, of in enumerate(service) if of == name] for name in logs.places}
    offered: dict[str, list[int]] = {name: [] for name in logs.places}
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
                offered[name].append(waiting[name].pop(0))
            held = sum(payment[at] for at in offered[name] if client[at] not in lost[name])
            if left or (held > budgets[name] and not mechanism.keeps_budgets):
                what = f"{name} offers {money(amount)}, which it does not have"
                yield Finding(f"round {number}: step {step}: {what}")
                return
        so_far = np.array([at for name in logs.places for at in offered[name]], dtype=np.int64)
        book = _book(logs, mechanism, number, asks, offers.where(so_far), world)
        refused = so_far[clearing_of(mechanism, book, number).core == NO_CORE]
        now_lost: dict[str, set[int]] = {name: set() for name in logs.places}
        for at in refused.tolist():
            now_lost[service[at]].add(client[at])
        asked = [name for name in active if now_lost[name] - lost[name]]
        lost = now_lost
    if asked and step < mechanism.steps:
        yield Finding(f"round {number}: step {step + 1}: {', '.join(asked)} may offer, but none does")


def _book(logs: Logs, mechanism: Mechanism, number: int, asks: Asks, offers: Rows, world: Qualities) -> Book:
    services, clients, now = offers["m"], offers["client"], logs.conditions(number)
    there = logs.takes_part.reshape(-1, len(logs.places))[number - logs.numbers.start]
    budgets = np.where(there, [now.free[name] for name in logs.places], 0)
    least = asks.least[services, clients]
    columns = services, clients, offers["payment"], offers["bid"], least, budgets
    view = partial(_view, logs, number, world, offers, record_of(mechanism, world.bid))
    return Book(*columns, now.cores, partial(logs.tie_order, number), view, cores_of=now.cores_of)


def _view(logs: Logs, number: int, world: Qualities, offers: Rows, record: IntArray | None) -> RoundView:
    services, count = logs.scenario.services, len(logs.places)
    totals = [np.inf if it.total_budget is None else to_micro(it.total_budget) for it in services]
    owed = [logs.conditions(number).owed.get(m, 0) for m in range(count)]
    left = totals - logs.all_rounds["spent"].reshape(-1, count)[: number - 1].sum(axis=0) - owed
    return replace(logs.round_view(number, world, offers["m"]), total_left=read_only(left), record=record)
