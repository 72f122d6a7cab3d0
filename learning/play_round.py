"""The one walk through a round, which batch runs, screens, training and environments share."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace

from des.log_records import RoundReport
from des.market import Market
from des.observation import Observation, Offer, Privileged
from des.offer_checks import OfferError, read_offer
from fl.data.dqi import DQIParameters
from flmarket.core.errors import RunError
from flmarket.core.plugin_errors import plugin_code
from learning.policy import Policy, learns

HIDDEN = frozenset(it.name for kind in (Privileged, DQIParameters) for it in fields(kind))
"""The attributes of what is None in a market that does not show services the clients' data."""

NOT_SHOWN = 'services see the clients\' data with market.data = "public", a policy with privileged = True in any market'

Observer = Callable[[RoundReport], None]
Outside = Callable[[Mapping[str, Observation]], Mapping[str, Offer]]


class Stopped(KeyboardInterrupt):
    """Raised by an observer that ends a run between two rounds."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A service's observation and its offer."""

    observation: Observation
    offer: Offer


def play_round(market: Market, policies: Mapping[str, Policy], outside: Outside | None = None) -> RoundReport:
    """Play one round: every service acts on what it observes, and learns from what came of it.

    Args:
        market: between rounds.
        policies: by service; all but those that ``outside`` acts for.
        outside: returns the offers of other services among those that observe something, in every step of the round.

    Raises:
        PluginFailed: a policy, the mechanism or the clients' behaviour raised an exception; says where.
        OfferError, ClearingError, BehaviourError: one of them returned what cannot be meant.
        Diverged: a model's training diverged.
    """
    with plugin_code(f"round {market.round + 1}"):
        try:
            return _play_round(market, policies, outside)
        except OfferError as error:
            raise error.made_by(policies[error.service]) if error.service in policies else error from error


def _play_round(market: Market, policies: Mapping[str, Policy], outside: Outside | None) -> RoundReport:
    labels = {spec.name: spec.policy for spec in market.services}
    steps: dict[str, list[Decision]] = {}
    asked = market.open_round()
    while asked:
        outsiders = outside(asked) if outside else {}
        step = decide(policies, labels, asked, outsiders)
        asked = market.offer({**outsiders, **{name: decision.offer for name, decision in step.items()}})
        for name, decision in step.items():
            steps.setdefault(name, []).append(decision)
    report = market.close_round()
    decisions = {name: _together(*each) for name, each in steps.items()}
    learn(policies, labels, decisions, report)
    return report


def _together(first: Decision, *later: Decision) -> Decision:
    """Return what a service decided in all steps of a round, given what it observed in the first."""
    return Decision(first.observation, first.offer.and_then(*[it.offer for it in later])) if later else first


def decide(
    policies: Mapping[str, Policy],
    labels: Mapping[str, str],
    observations: Mapping[str, Observation],
    known: Mapping[str, Offer] | None = None,
) -> dict[str, Decision]:
    """Let every service decide. Those whose policies declare ``sees_offers`` decide last, knowing the others' offers.

    They do not see each other's offers: they cannot all be last. Who has an offer among the ``known`` does not decide.
    """
    offers = dict(known or {})
    asked = [name for name in observations if name not in offers]
    seeing = [name for name in asked if policies[name].sees_offers]
    blind = [name for name in asked if name not in seeing]
    offers |= {name: _act(policies[name], labels[name], observations[name]) for name in blind}
    decisions = {name: Decision(observations[name], offers[name]) for name in blind}
    if seeing:  # offers of plug-ins, which may be lists, or wrong; policies that see them must not change them
        offers = {name: _read(offer, labels.get(name, name), observations[name]) for name, offer in offers.items()}
    for name in seeing:
        revealed = reveal(observations[name], offers, privileged=policies[name].privileged)
        decisions[name] = Decision(revealed, _act(policies[name], labels[name], revealed))
    return {name: decisions[name] for name in observations if name in decisions}


def reveal(observation: Observation, offers: Mapping[str, Offer], *, privileged: bool) -> Observation:
    """Return a privileged observation with the rivals' offers in this round.

    Where data are public, every observation has them: what the policy declares counts.
    """
    if not privileged or observation.privileged is None:
        raise RunError(
            f"the policy of service {observation.service!r} declares sees_offers; it must declare privileged, too"
        )
    return replace(observation, privileged=replace(observation.privileged, rival_offers=dict(offers)))


def learn(
    policies: Mapping[str, Policy], labels: Mapping[str, str], decisions: Mapping[str, Decision], report: RoundReport
) -> None:
    """Let every service that decided learn from what came of it."""
    for name, decision in decisions.items():
        if not learns(policies[name]):
            continue
        with plugin_code(f"policy {labels[name]!r} of service {name!r} failed to learn in round {report.round}"):
            policies[name].learn(decision.observation, decision.offer, report.feedback[name])


def play(
    market: Market,  # between rounds
    policies: Mapping[str, Policy],  # by service
    observers: Iterable[Observer] = (),  # get every round's report
    *,
    # called with the number of each round before it is opened; may put other policies into ``policies``
    prepare: Callable[[int], None] = lambda _: None,
    last: int | None = None,  # the last round to play; all if not given
) -> None:
    """Play all remaining rounds; every observer is notified of every round's report."""
    observers = tuple(observers)
    while not market.finished and (last is None or market.round < last):
        prepare(market.round + 1)
        report = play_round(market, policies)
        for observe in observers:
            observe(report)


def _act(policy: Policy, label: str, observation: Observation) -> Offer:
    with plugin_code(f"policy {label!r} of service {observation.service!r} failed to act in round {observation.round}"):
        try:
            return policy.act(observation)
        except AttributeError as error:
            if error.obj is None and error.name in HIDDEN:
                raise AttributeError(f"{error}; {NOT_SHOWN}") from error
            raise


def _read(offer: Offer, label: str, observation: Observation) -> Offer:
    return read_offer(
        offer, policy=label, service=observation.service, round_=observation.round, clients=observation.clients
    )
