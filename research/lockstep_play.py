"""Policies play in lockstep: what ``learning.evaluation`` plays one market after another, many markets at once.

Every service of every market has a ``flmarket.Policy`` of its own, which observes, acts and learns as in a SimPy
market, privileged ones and those that see offers included; results are equal to the last bit. Markets that lockstep
refuses are refused. One service of each market can be decided for by a function over all markets: see ``Joint``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from des.market import Market
from des.money import MICRO
from des.observation import Feedback, Observation, Offer, Privileged
from des.offer_checks import check_offer
from fl.arithmetic.elementary import exp, log
from fl.arithmetic.streams import stream_key
from fl.arrays import AnyArray, FloatArray, IntArray
from flmarket.core.plugin_errors import plugin_code
from learning.evaluation import Entrant, EvaluationResults, games, seat_entrant
from learning.lockstep.lockstep import STATUS, Closed, Lockstep, View
from learning.lockstep.market_kinds import ENDLESS
from learning.lockstep.offers import Offers
from learning.play_round import Decision, decide
from learning.policy import Policy, learns
from learning.seats import MarketFactory

TOGETHER = 128
"""Markets that are played at once where there are more: enough for speed, and little memory."""

MEASURES = 6
"""Values kept of each service and round: accuracy, that on test images, reward, money spent, offers made, clients."""

Made = tuple[int, int, Decision, Offers]
"""The market, the service, what it observed and offered, and the same as the market takes it."""


@dataclass(frozen=True, slots=True)
class Seating:
    """The players of one market.

    Attributes:
        policies: by service.
        labels: the policies' names, by service, for messages.
        privileged: the services that see what is private.
    """

    policies: Mapping[str, Policy]
    labels: Mapping[str, str]
    privileged: frozenset[str]

    @classmethod
    def of(cls, market: Market, name: str, entrant: Entrant) -> "Seating":
        """Return who plays a market that has not begun, once an entrant of this name has seated its policies.

        Raises:
            ValueError: it leaves a service without a policy.
        """
        policies = seat_entrant(market, name, entrant)
        labels = {spec.name: spec.policy for spec in market.services}
        return cls(policies, labels, frozenset(spec.name for spec in market.services if spec.privileged))


@dataclass(frozen=True, slots=True)
class Joint:
    """Decides for one service of each market, in place of its policy, for all markets at once.

    Attributes:
        seats: [B] the service, by its index.
        decide: returns the offers of these services, market by market; none where a service does not take part.
    """

    seats: IntArray
    decide: Callable[[View], Offers]


def evaluate(
    factory: MarketFactory,
    entrants: Mapping[str, Entrant],
    seeds: Iterable[int],
    progress: Callable[[str, int], None] | None = None,
) -> EvaluationResults:
    """Return what ``learning.evaluation.evaluate`` returns, sooner. Arguments and errors are those of that one.

    Raises:
        LockstepError: the market cannot be played in lockstep.
    """
    due, runs = games(entrants, seeds), list[FloatArray]()
    for start in range(0, len(due), TOGETHER):
        batch = due[start : start + TOGETHER]
        seatings = [seating(factory, seed, name, entrants[name]) for name, seed in batch]
        markets = Lockstep([factory] * len(batch), [seed for _, seed in batch])
        runs.extend(play(markets, [seed for _, seed in batch], seatings))
        for name, seed in batch:
            if progress is not None:
                progress(name, seed)
    return EvaluationResults.of(due, markets.kinds.markets[0].services, runs)


def seating(factory: MarketFactory, seed: int, name: str, entrant: Entrant) -> Seating:
    """Return who plays the market of a seed. Errors as in ``Seating.of``."""
    market = factory(seed)
    try:
        return Seating.of(market, name, entrant)
    finally:
        market.close()


def play(
    markets: Lockstep, seeds: Sequence[int], seatings: Sequence[Seating], joint: Joint | None = None
) -> FloatArray:
    """Play markets that have just begun to their end.

    Args:
        markets: B.
        seeds: [B] those with which they began.
        seatings: [B] who plays each.
        joint: who decides for one service of each.

    Returns:
        [B, MEASURES, N, M] what is kept of each round. A service that left keeps its accuracy and its reward.

    Raises:
        OfferError: a policy's offer breaks a constraint.
        LockstepOfferError: one of ``joint`` does.
        PluginFailed: a policy raised an exception.
        ClearingError, BehaviourError: a mechanism or behaviour of a plug-in returned what cannot be meant.
    """
    kinds = markets.kinds
    kept = np.zeros((len(seatings), MEASURES, int(kinds.rounds.max()), kinds.services))
    while not (over := markets.finished).all():
        playing = np.flatnonzero(~over)
        view = markets.open()
        theirs = None if joint is None else joint.decide(view)
        made = [
            each
            for b in playing.tolist()
            for each in _decisions(
                markets, view, b, seeds[b], seatings[b], None if joint is None else joint.seats[b], theirs
            )
        ]
        offers = _joined([*(offers for *_, offers in made), *([] if theirs is None else [theirs])])
        before, learners = markets.curves.accuracy, [it for it in made if _learner(seatings, it)]
        closed = markets.close(offers)
        for b, name, decision, feedback in _outcomes(markets, before, closed, learners):
            _teach(seatings[b], name, decision, feedback)
        wanted = np.bincount(offers.market * kinds.services + offers.service, minlength=closed.spent.size)
        accuracy = markets.curves.accuracy  # nothing is trained, so that on test images is the same
        columns = (
            accuracy, accuracy, closed.reward, closed.spent / MICRO, wanted.reshape(closed.spent.shape), closed.served,
        )  # fmt: skip
        for kind, column in enumerate(columns):
            kept[playing, kind, closed.round[playing] - 1] = column[playing]
    for row, last in zip(kept, markets.round.tolist(), strict=True):
        row[:3, last:] = row[:3, last - 1, None]
    return kept


def observations(
    markets: Lockstep, view: View, b: int, seed: int, privileged: frozenset[str] = frozenset()
) -> dict[str, Observation]:
    """Return what the services of market ``b``, which began with ``seed``, observe in the open round."""
    market, number = markets.kinds.each[b], int(view.round[b])
    names, clients = tuple(spec.name for spec in market.services), market.population.spec.count
    bids = _read_only(np.where(view.asked[b, :, None], view.bids[b] / MICRO, 0.0)[: len(names), :clients])
    offline = frozenset(np.flatnonzero(~markets.kinds.online(view.round)[b, :clients]).tolist())
    found = {}
    for m in np.flatnonzero(view.asked[b]).tolist():
        spec, total, held = market.services[m], int(markets.kinds.total[b, m]), view.world.at[b, m, :clients]
        pairs, hidden = view.world.pairs, None
        if spec.name in privileged:
            hidden = Privileged(_read_only(pairs.size[held]), _read_only(pairs.emd[held]))
        found[spec.name] = Observation(
            round=number,
            rounds=market.rounds,
            service=spec.name,
            services=names,
            dqi=_read_only(pairs.dqi[held]),
            bids=bids,
            budget=int(view.budget[b, m]) / MICRO,
            cores=int(view.cores[b]),
            accuracy=float(markets.curves.accuracy[b, m]),
            target_accuracy=spec.target_accuracy,
            key=stream_key(seed, "policy", spec.name, number),
            offline=offline,
            privileged=hidden,
            total_left=None if total == ENDLESS else (total - int(markets.paid[b, m])) / MICRO,
        )
    return found


def _read_only(array: AnyArray) -> AnyArray:
    array.setflags(write=False)
    return array


def _decisions(
    markets: Lockstep, view: View, b: int, seed: int, seating: Seating, joint: int | None, theirs: Offers | None
) -> Iterator[Made]:
    """Yield what the policies of one market decide."""
    names = [spec.name for spec in markets.kinds.each[b].services]
    asked = np.flatnonzero(view.asked[b, : len(names)]).tolist()
    seen = observations(markets, view, b, seed, seating.privileged)
    given = {} if theirs is None or joint not in asked else {names[joint]: _offer(theirs, b)}
    for name, decision in decide(seating.policies, seating.labels, seen, given).items():
        m, observation = names.index(name), decision.observation
        checked = check_offer(
            decision.offer,
            policy=seating.labels[name],
            service=name,
            round_=observation.round,
            bids=view.bids[b, m, : observation.clients],
            budget=int(view.budget[b, m]),
            offline=observation.offline,
        )
        count = len(checked.clients)
        yield b, m, decision, Offers(np.full(count, b), np.full(count, m), checked.clients, checked.payments)


def _offer(offers: Offers, b: int) -> Offer:
    """Return the offer of the one service of market ``b`` that is among these."""
    mine = offers.market == b
    return Offer(offers.client[mine], offers.payment[mine] / MICRO)


def _joined(parts: Sequence[Offers]) -> Offers:
    """Return all offers, market by market and service by service."""
    columns = [np.concatenate([np.empty(0, np.int64), *column]) for column in zip(*map(_columns, parts), strict=True)]
    if not columns:
        columns = [np.empty(0, np.int64)] * 4
    order = np.lexsort((columns[1], columns[0]))
    return Offers(*(column[order] for column in columns))


def _columns(offers: Offers) -> tuple[IntArray, ...]:
    return offers.market, offers.service, offers.client, offers.payment


def _outcomes(
    markets: Lockstep, before: FloatArray, closed: Closed, made: Sequence[Made]
) -> Iterator[tuple[int, str, Decision, Feedback]]:
    """Yield what each policy decided, and what came of it, as ``des.round_state`` says it."""
    fate, services = closed.fate, markets.kinds.services
    rows = fate.offers.market * services + fate.offers.service
    for b, m, decision, offers in made:
        first = int(np.searchsorted(rows, b * services + m))
        mine = np.arange(first, first + len(offers.client))
        served = fate.served[mine]
        curve = markets.kinds.curves[markets.kinds.of[b]][decision.observation.service]
        base = curve.loss_0 + curve.loss_error * log(1.0 - float(before[b, m]))
        feedback = Feedback(
            round=int(closed.round[b]),
            accuracy=float(markets.curves.accuracy[b, m]),
            reward=float(closed.reward[b, m]),
            served=served,
            dropped=fate.awarded[mine] & ~served,
            paid=np.where(served, fate.price[mine], 0) / MICRO,
            losses=np.where(served, exp(base + curve.loss_emd * fate.emd[mine]), np.nan),
            status=STATUS[int(closed.status[b, m])],
        )
        yield b, decision.observation.service, decision, feedback


def _learner(seatings: Sequence[Seating], made: Made) -> bool:
    return learns(seatings[made[0]].policies[made[2].observation.service])


def _teach(seating: Seating, name: str, decision: Decision, feedback: Feedback) -> None:
    """Let one policy learn."""
    doing = f"policy {seating.labels[name]!r} of service {name!r} failed to learn in round {feedback.round}"
    with plugin_code(doing):
        seating.policies[name].learn(decision.observation, decision.offer, feedback)
