"""A trained agent's reasons in a round, in words: its decision is made again, from what it saw."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from des.clients.population import Qualities
from des.log_records import Outcome
from des.mechanism import MECHANISMS
from des.money import MICRO, to_micro
from des.observation import Observation, Offer, Status
from des.participation import PublicView, bids_shown
from fl.surrogate.learning_curves import Curve
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.what_if.reasons import cash
from flmarket.core.errors import InputError
from learning.mahdrl.agent import Mahdrl
from learning.mahdrl.paper import MahdrlPaper
from learning.mahdrl.stacked_networks import Reasons
from learning.policy import POLICIES
from scenarios.build import backend_of, create_policy, known_curve, policy_context
from scenarios.file.interventions import services_over_time
from scenarios.file.schema import Service

SHOWN = 3  # clients that a sentence names


def looked_at(logs: Logs, number: int, service: str, world: Qualities) -> Iterator[str]:
    """Yield what a service's trained agent went by in a round, or why that is not known."""
    spec = logs.conditions(number).scenario.service(service)
    seat, begun = _seat(logs, number, service)
    try:
        if not issubclass(kind := POLICIES.load(spec.policy), Mahdrl | MahdrlPaper):
            yield f"{service} plays {spec.policy}, which is no trained agent that could be asked what it looked at."
            return
        if logs.meta.get("agents", {}).get(f"agent/{seat}") != kind.agent_digest(spec.checkpoint):
            yield f"What {spec.policy} looked at is not known: the agent here is not the one of the run."
            return
        policy = create_policy(spec, policy_context(logs.scenario, spec, _curve_of(logs, spec)))
        assert isinstance(policy, Mahdrl | MahdrlPaper)  # noqa: S101 - as its class
        seen = _observation(logs, number, service, world)
        if isinstance(policy, Mahdrl) and policy.remembers:
            _remind(policy, logs, number, service, begun)
        reasons = policy.reasons(seen)
    except InputError as error:
        yield f"What {spec.policy} looked at is not known: {error}."
        return
    offers = logs.offers_of(number, service)
    offer = reasons.offer
    if [*offer.clients] != [*offers["client"]] or [*to_micro(offer.payments)] != [*offers["payment"]]:
        yield f"What {spec.policy} looked at is not known: from what it saw, it would decide otherwise here."
        return
    yield from _words(spec.policy, seen, reasons, lots=isinstance(policy, Mahdrl) and policy.draws_lots)


def _curve_of(logs: Logs, service: Service) -> Curve | None:
    """Return the learning curve that a service knew in the run, whatever fits are here now; None if it knew none.

    Its noise is that of the fit, also where the run went without.
    """
    if backend_of(logs.scenario).trains:
        return known_curve(logs.scenario, service)
    key = f"surrogate/{service.dataset}"
    try:
        return Curve.of(logs.meta["fits"][key])
    except (KeyError, TypeError, ValueError, OverflowError):
        raise InputError(f"meta.json: fits: has no parameters {key!r} of a learning curve") from None


def _seat(logs: Logs, number: int, service: str) -> tuple[str, int]:
    """Return the seat of the service in a round, and when its policy began: ``mnist``, or ``mnist@30`` since 30."""
    newest = service, 1
    for seat, _ in services_over_time(logs.scenario):
        name, _, begun = seat.rpartition("@")
        if name == service and begun.isdigit() and int(begun) <= number:
            newest = seat, int(begun)
    return newest


def _remind(policy: Mahdrl, logs: Logs, number: int, service: str, begun: int) -> None:
    """Let an agent learn again what it had learned of the rounds before, from the one on in which it began."""
    for at, world in logs.worlds():
        if at >= number:
            return
        if at < max(begun, logs.stay[0][logs.places[service]]):
            continue
        rows = logs.offers_of(at, service)
        offer = Offer(rows["client"].to_numpy(), rows["payment"].to_numpy() / MICRO)
        policy.remember(_observation(logs, at, service, world), offer, (rows["outcome"] != Outcome.OUTBID).to_numpy())


def _observation(logs: Logs, number: int, service: str, world: Qualities) -> Observation:
    scenario, now = logs.scenario, logs.conditions(number)
    if not scenario.once:
        raise InputError("it is worked out only where services decide once in a round, for one (market, timeline.mode)")
    rows: Any = logs.rounds_of(number)
    absent = (Status.LEFT, Status.WAITING)
    shown = {m for name, m in logs.places.items() if rows.loc[name, "status"] not in absent}
    total = now.scenario.service(service).total_budget
    earlier = (logs.rounds["service"] == service) & (logs.rounds["round"] < number)
    accuracy = np.where(np.isnan(logs.exact_accuracy), logs.rounds["accuracy"], logs.exact_accuracy)[earlier]
    view = PublicView(
        round=number,
        rounds=scenario.rounds,
        seed=logs.seed,
        services=tuple(logs.places),
        world=world,
        bids=bids_shown(world.bid, shown),
        cores=now.cores,
        offline=frozenset(now.offline),
        public_bids=scenario.market.bids == "public",
        over_budget=MECHANISMS.create(now.scenario.market.mechanism, **now.scenario.market.options).keeps_budgets,
        cores_of=now.cores_of,
    )
    m = logs.places[service]
    return view.of(
        m,
        unwilling=None if world.serves is None else ~world.serves[m],
        budget=int(rows.loc[service, "budget"]),
        total_left=None if total is None else int(to_micro(total) - logs.rounds["spent"][earlier].sum()),
        accuracy=float(accuracy[-1]) if accuracy.size else 0.0,  # agents do not look at that of the first round
        target_accuracy=float(rows.loc[service, "target_accuracy"]),
    )


def _words(policy: str, seen: Observation, reasons: Reasons, *, lots: bool) -> Iterator[str]:
    clients, q = reasons.offer.clients, np.where(seen.available, reasons.q, -np.inf)
    order = np.argsort(-q, kind="stable")
    place = 1 + (q[:, None] < q).sum(axis=1)  # who is rated the same has the same rank
    best = ", ".join(f"{client} ({q[client]:.4g})" for client in order[:SHOWN].tolist())
    wanted = ", ".join(map(str, place[clients].tolist())) or "none"
    tied = lots and np.isin(q[clients], np.delete(q, clients)).any()
    drawn = " Of clients that it rated the same, it drew some." if tied else ""
    offers = f"Its offers went to the ranks {wanted}.{drawn}"
    yield f"{policy} rated clients by what they add to a set: highest {best}. {offers}"
    if not len(clients):
        return
    if reasons.at_offer is not None:
        low, high = (f"{100 * float(edge):.0f} %" for edge in (reasons.at_offer.min(), reasons.at_offer.max()))
        span = low if low == high else f"{low} to {high}"
        yield f"It expected its offers to be served with a probability of {span}."
    over = to_micro(reasons.offer.payments) - to_micro(seen.own_bids[clients])
    dearest = np.argsort(-over, kind="stable")[: np.count_nonzero(over > 0)].tolist()
    if not dearest:
        yield "It offered every client its bid."
    for at in dearest[:SHOWN]:
        yield _overbid(seen, reasons, at)
    if len(dearest) > SHOWN:
        yield f"It offered more than the bid to {len(dearest) - SHOWN} more."


def _overbid(seen: Observation, reasons: Reasons, at: int) -> str:
    """Return what it offered above the bid to a client, the ``at``-th of its offer, and what for."""
    client = int(reasons.offer.clients[at])
    payment, bid = int(to_micro(reasons.offer.payments[at])), int(to_micro(seen.own_bids[client]))
    said = f"It offered client {client} {cash(payment, bid)} for a bid of {cash(bid, payment)}"
    if reasons.at_bid is None or reasons.at_offer is None:
        return f"{said}."
    before, then = (f"{100 * float(chance):.0f} %" for chance in (reasons.at_bid[client], reasons.at_offer[at]))
    rivals = np.delete(seen.bids[:, client], seen.services.index(seen.service))
    highest = f"the highest bid of the client to a rival is {cash(int(to_micro(rivals.max(initial=0.0))))}"
    of_rivals = highest if seen.bids_public else "the client's bids to rivals are not public"
    return f"{said}: at the bid it expected to be served with {before}, so with {then}; {of_rivals}."
