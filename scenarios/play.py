"""The one walk through a round that batch runs, screens and training share."""

from collections.abc import Callable, Iterable, Mapping

from des.market import Market
from des.offers import OfferError
from des.records import Observation, Offer, RoundReport
from fl.errors import RunError
from learning.policy import Policy

Observer = Callable[[RoundReport], None]


class PolicyFailed(RunError):  # noqa: N818 - names what happened, and is shown to the user as it is
    """A policy raised an exception of its own."""

    def __init__(self, policy: str, service: str, round_: int, doing: str, error: Exception) -> None:
        super().__init__(f"policy {policy!r} of service {service!r} failed to {doing} in round {round_}: {error!r}")


def play_round(market: Market, policies: Mapping[str, Policy]) -> RoundReport:
    """Play one round: every service acts on what it observes, and learns what came of it.

    Args:
        market: between rounds, and not finished.
        policies: by service.

    Raises:
        OfferError: an offer breaks a constraint.
        PolicyFailed: a policy raised an exception.
        Diverged: a model's training failed.
    """
    labels = {spec.name: spec.policy for spec in market.services}
    observations = market.open_round()
    offers = {name: _act(policies[name], labels[name], observation) for name, observation in observations.items()}
    report = market.close_round(offers)
    for name, observation in observations.items():
        try:
            policies[name].learn(observation, offers[name], report.feedback[name])
        except Exception as error:
            raise PolicyFailed(labels[name], name, report.round, "learn", error) from error
    return report


def play(market: Market, policies: Mapping[str, Policy], observers: Iterable[Observer] = ()) -> None:
    """Play all rounds that are left; every observer gets every round's report."""
    observers = tuple(observers)
    while not market.finished:
        report = play_round(market, policies)
        for observe in observers:
            observe(report)


def _act(policy: Policy, label: str, observation: Observation) -> Offer:
    try:
        return policy.act(observation)
    except OfferError:
        raise
    except Exception as error:
        raise PolicyFailed(label, observation.service, observation.round, "act", error) from error
