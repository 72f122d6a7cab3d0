"""The state of a plug-in's mechanism or behaviour must be what a checkpoint can store."""

import re

import pytest

from des.behaviour import BehaviourError
from des.behaviours.truthful import Truthful
from des.mechanism import ClearingError
from des.mechanisms.pay_as_offered import PayAsOffered
from des.observation import Offer


@pytest.mark.parametrize(
    "state", [5, {"seen": {1, 2}}, {"price": float("nan")}, {1: "one"}], ids=["no dict", "no JSON", "NaN", "no text"]
)
@pytest.mark.parametrize("kind", ["mechanism", "behaviour"])
def test_a_state_that_cannot_be_stored_names_the_method(make_market, kind, state) -> None:
    class Odd(PayAsOffered if kind == "mechanism" else Truthful):  # type: ignore[misc]
        def state(self):
            return state

    market = make_market(["alpha"], **{kind: Odd()})
    market.open_round()
    market.close_round({"alpha": Offer.none()})
    expected = rf"^{kind} Odd\.state\(\) \({re.escape(__file__)}:\d+\) must return what JSON can store: "
    with pytest.raises((ClearingError, BehaviourError), match=expected):
        market.state()
