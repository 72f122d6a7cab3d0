"""What a trained agent went by in a round, in words: its decision is made again, from what it saw."""

from collections.abc import Iterator, Sequence

import numpy as np

from des.log_records import Outcome
from des.mechanism import create as create_mechanism
from des.money import MICRO, MicroArray, to_micro
from des.observation import Observation, Offer, Status
from des.population import Qualities
from fl.arrays import FloatArray, IntArray
from fl.streams import stream_key
from flmarket.core.errors import InputError
from learning.mahdrl.agent_file import Reasons
from learning.mahdrl.paper.policy import MahdrlPaper
from learning.mahdrl.policy import Mahdrl
from learning.policy import load
from scenarios.build import create_policy, policy_context
from scenarios.file.interventions import services_over_time
from scenarios.judging.evidence import Logs, Row
from scenarios.judging.reasons import cash

SHOWN = 3  # clients that a sentence names

_HIDDEN = "the client's bids to rivals are not public"


def looked_at(logs: Logs, number: int, service: str, world: Qualities) -> Iterator[str]:
    """Yield what a service's trained agent went by in a round, or why that is not known."""
    spec = logs.conditions(number).services[service]
    try:
        if not issubclass(found := load(spec.policy), Mahdrl | MahdrlPaper):
            yield f"{service} plays {spec.policy}, which is no trained agent that could be asked what it looked at."
            return
        if logs.meta.get("agents", {}).get(f"agent/{_seat(logs, number, service)}") != found.agent_digest(
            spec.checkpoint
        ):
            yield f"What {spec.policy} looked at is not known: the agent here is not the one of the run."
            return
        policy = create_policy(spec, policy_context(logs.scenario, spec, logs.curve_of(spec)))
        assert isinstance(policy, Mahdrl | MahdrlPaper)  # noqa: S101 - as its class
        seen = _observation(logs, number, service, world)
        if isinstance(policy, Mahdrl) and policy.remembers:
            _remind(policy, logs, number, service)
        reasons = policy.reasons(seen)
    except InputError as error:
        yield f"What {spec.policy} looked at is not known: {error}."
        return
    made = [(row["client"], row["payment"]) for row in logs.offers_of.get((number, service), ())]
    if _listed(reasons) != made:
        yield f"What {spec.policy} looked at is not known: from what it saw, it would decide otherwise here."
        return
    yield from _words(spec.policy, seen, reasons, lots=isinstance(policy, Mahdrl) and policy.draws_lots)


def _seat(logs: Logs, number: int, service: str) -> str:
    """Return the name of the service's seat in a round: ``mnist``, or ``mnist@30`` for the policy that began then."""
    seat = service
    for name, _ in services_over_time(logs.scenario):
        begun = name.removeprefix(f"{service}@")
        if begun != name and begun.isdigit() and int(begun) <= number:
            seat = name
    return seat


def _remind(policy: Mahdrl, logs: Logs, number: int, service: str) -> None:
    _, _, begun = _seat(logs, number, service).partition("@")
    for at, world in logs.worlds():
        if at >= number:
            return
        status = next(row["status"] for row in logs.rows_of[at] if row["service"] == service)
        if at < int(begun or 1) or status == Status.WAITING:
            continue
        rows = logs.offers_of.get((at, service), ())
        offer = Offer(
            np.array([row["client"] for row in rows], dtype=np.int64),
            np.array([row["payment"] for row in rows], dtype=np.int64) / MICRO,
        )
        won = np.array([row["outcome"] != Outcome.OUTBID for row in rows], dtype=np.bool_)
        policy.remember(_observation(logs, at, service, world), offer, won)


def _listed(reasons: Reasons) -> list[tuple[int, int]]:
    offer = reasons.offer
    return list(zip(offer.clients.tolist(), to_micro(offer.payments).tolist(), strict=True))


def _observation(logs: Logs, number: int, service: str, world: Qualities) -> Observation:
    scenario, conditions = logs.scenario, logs.conditions(number)
    rows: dict[str, Row] = {row["service"]: row for row in logs.rows_of[number]}
    market = conditions.market
    bids, public = np.zeros(world.bid.shape), scenario.market.bids == "public"
    for name, m in logs.places.items():
        if rows[name]["status"] not in (Status.LEFT, Status.WAITING) and (public or name == service):
            bids[m] = world.bid[m] / MICRO
    total = conditions.services[service].total_budget
    earlier = (row for at in logs.numbers if at < number for row in logs.rows_of[at] if row["service"] == service)
    spent = sum(row["spent"] for row in earlier)
    before = [row for row in logs.rows_of.get(number - 1, ()) if row["service"] == service]
    return Observation(
        round=number,
        rounds=scenario.rounds,
        service=service,
        services=tuple(logs.places),
        dqi=world.seen[logs.places[service]],
        bids=bids,
        budget=rows[service]["budget"] / MICRO,
        cores=conditions.cores,
        accuracy=_accuracy(logs, before[0]) if before else 0.0,  # agents do not look at that of the first round
        target_accuracy=rows[service]["target_accuracy"],
        key=stream_key(logs.seed, "policy", service, number),
        offline=frozenset(conditions.offline),
        over_budget=create_mechanism(market.mechanism, market.options).keeps_budgets,
        bids_public=public,
        total_left=None if total is None else (int(to_micro(total)) - spent) / MICRO,
    )


def _accuracy(logs: Logs, row: Row) -> float:
    """Return the accuracy that an agent saw: the last of its six decimals may turn a close decision."""
    exact = logs.exact_accuracy(row)
    return float(row["accuracy"]) if exact is None else exact


def _words(policy: str, seen: Observation, reasons: Reasons, *, lots: bool) -> Iterator[str]:
    clients, q = reasons.offer.clients, np.where(seen.available, reasons.q, -np.inf)
    order = np.argsort(-q, kind="stable")
    place = 1 + (q[:, None] < q).sum(axis=1)  # who is rated the same has the same rank
    best = ", ".join(f"{client} ({q[client]:.4g})" for client in order[:SHOWN].tolist())
    wanted = ", ".join(map(str, place[clients].tolist())) or "none"
    drawn = " Of clients that it rated the same, it drew some." if lots and _tied(q, clients) else ""
    offers = f"Its offers went to the ranks {wanted}.{drawn}"
    yield f"{policy} rated clients by what they add to a set: highest {best}. {offers}"
    payments, bids = to_micro(reasons.offer.payments), to_micro(seen.own_bids[clients])
    over = np.argsort(bids - payments, kind="stable")[: np.count_nonzero(payments > bids)].tolist()
    if reasons.at_bid is not None and reasons.at_offer is not None and len(clients):
        yield from _chances(seen, reasons, over)
    if not len(clients):
        return
    if not over:
        yield "It offered everybody the bid."
    elif reasons.at_bid is None:
        yield f"It offered more than the bid to {_over(clients.tolist(), payments, bids, over)}."


def _tied(q: FloatArray, clients: IntArray) -> bool:
    """Return whether somebody who got no offer was rated like somebody who did."""
    return bool(np.isin(q[clients], np.delete(q, clients)).any())


def _chances(seen: Observation, reasons: Reasons, over: Sequence[int]) -> Iterator[str]:
    assert reasons.at_bid is not None  # noqa: S101 - asked only where the agent weighs it
    assert reasons.at_offer is not None  # noqa: S101
    low, high = (_percent(float(edge)) for edge in (reasons.at_offer.min(), reasons.at_offer.max()))
    yield f"It expected its offers to be served with a probability of {low if low == high else f'{low} to {high}'}."
    clients = reasons.offer.clients
    for at in over[:SHOWN]:
        client = int(clients[at])
        rivals = np.delete(seen.bids[:, client], seen.services.index(seen.service))
        highest = cash(int(to_micro(rivals.max(initial=0.0))))
        of_rivals = f"the highest bid of the client to a rival is {highest}" if seen.bids_public else _HIDDEN
        yield (
            f"It offered client {client} {_pair(reasons.offer.payments[at], seen.own_bids[client])}: at the bid it "
            f"expected to be served with {_percent(float(reasons.at_bid[client]))}, so with "
            f"{_percent(float(reasons.at_offer[at]))}; {of_rivals}."
        )
    if len(over) > SHOWN:
        yield f"It offered more than the bid to {len(over) - SHOWN} more."


def _pair(payment: float, bid: float) -> str:
    offered, asked = int(to_micro(payment)), int(to_micro(bid))
    return f"{cash(offered, asked)} for a bid of {cash(asked, offered)}"


def _over(clients: Sequence[int], payments: MicroArray, bids: MicroArray, over: Sequence[int]) -> str:
    named = (
        f"client {clients[at]} ({cash(int(payments[at]), int(bids[at]))} for {cash(int(bids[at]), int(payments[at]))})"
        for at in over[:SHOWN]
    )
    more = f" and {len(over) - SHOWN} more" if len(over) > SHOWN else ""
    return ", ".join(named) + more


def _percent(chance: float | FloatArray) -> str:
    return f"{100 * float(chance):.0f} %"
