"""A mistake in a plug-in ends its round with an error that says which, and in which file and line."""

import pickle
import re
from typing import Any

import numpy as np
import pytest

from des.behaviours.truthful import Truthful
from des.market import Market
from des.mechanisms.pay_as_offered import PayAsOffered
from des.observation import Offer
from des.offer_checks import OfferError
from flmarket.core.plugin_errors import PluginFailed
from learning.play_round import play_round
from learning.policy import Policy
from support.markets import factory, plain


class Idle(Policy):
    def __init__(self) -> None:
        """Know nothing of the market."""

    def act(self, observation):
        return Offer.none()


def fails(*_: Any) -> None:
    raise KeyError("price")


HERE = rf"KeyError: 'price' \({re.escape(__file__)}:\d+, in fails\)$"


def play(policy: Policy | None = None, market: Market | None = None) -> None:
    others = {"s0": policy or Idle(), "s1": Idle(), "s2": Idle()}
    play_round(market or factory(plain())(0), others)


@pytest.mark.parametrize("doing", ["act", "learn"])
def test_a_policy_that_raises(doing: str) -> None:
    policy = type("Broken", (Idle,), {doing: fails})()
    with pytest.raises(
        PluginFailed, match=rf"^policy 'by hand' of service 's0' failed to {doing} in round 1: {HERE}"
    ) as caught:
        play(policy)
    # Another process, which trains or plays in parallel, hands it over in one piece.
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301 - our own, made just now


@pytest.mark.parametrize(
    ("part", "base", "method"),
    [
        *(("_platform", PayAsOffered, method) for method in ("ask", "clear", "close")),
        *(("_population", Truthful, method) for method in ("bids", "close")),
    ],
)
def test_a_mechanism_or_behaviour_that_raises(part: str, base: type, method: str) -> None:
    thing = type("Broken", (base,), {method: fails})()
    market = factory(plain())(0)
    if part == "_platform":
        market._platform.mechanism = thing
    else:
        object.__setattr__(market._population.spec, "behaviour", thing)
    with pytest.raises(PluginFailed, match=rf"^round 1: {HERE}"):
        play(market=market)


def test_an_offer_that_breaks_a_constraint_says_who_made_it() -> None:
    class Stingy(Idle):
        def act(self, observation):
            return Offer(np.array([0]), np.array([0.0]))

    line = Stingy.act.__code__.co_firstlineno
    made = rf"; offered by Stingy\.act\(\) \({re.escape(__file__)}:{line}\)$"
    with pytest.raises(OfferError, match=rf"^policy 'by hand' of service 's0', round 1, client 0: .*{made}"):
        play(Stingy())


def test_a_defect_of_flmarket_stays_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Market, "open_round", lambda market: market.services["s0"])
    monkeypatch.setattr("flmarket.core.plugin_errors.is_own", lambda _: False)
    with pytest.raises(TypeError):
        play()
