"""What a plug-in's mechanism or behaviour says that it remembers: whatever it gets wrong, it is named."""

import json

import pytest

from des.behaviour import BehaviourError, Truthful
from des.mechanism import ClearingError
from des.mechanisms.pay_as_offered import PayAsOffered
from des.observation import Offer

ODD = {
    "raises": lambda: 1 // 0,
    "no dict": lambda: 5,
    "no JSON": lambda: {"seen": {1, 2}},
    "not a number": lambda: {"price": float("nan")},
    "another type": lambda: {1: "one"},
}


def played(make_market, **parts):
    market = make_market(["alpha"], **parts)
    market.open_round()
    market.close_round({"alpha": Offer.none()})
    return market


@pytest.mark.parametrize("kind", ODD)
def test_a_state_that_cannot_be_stored_names_the_mechanism(make_market, kind) -> None:
    class Odd(PayAsOffered):
        def state(self):
            return ODD[kind]()

    with pytest.raises(ClearingError, match=r"^mechanism Odd: "):
        played(make_market, mechanism=Odd()).state()


@pytest.mark.parametrize("kind", ODD)
def test_a_state_that_cannot_be_stored_names_the_behaviour(make_market, kind) -> None:
    class Odd(Truthful):
        def state(self):
            return ODD[kind]()

    with pytest.raises(BehaviourError, match=r"^behaviour Odd: "):
        played(make_market, behaviour=Odd()).state()


def test_what_fails_to_restore_is_named(make_market) -> None:
    class Forgets(PayAsOffered):
        def restore(self, state):
            raise KeyError("price")

    class Shy(Truthful):
        def restore(self, state):
            raise KeyError("weights")

    state = json.loads(json.dumps(played(make_market).state()))
    with pytest.raises(ClearingError, match=r"^mechanism Forgets: failed to restore its state: KeyError"):
        make_market(["alpha"], mechanism=Forgets()).restore(state)
    with pytest.raises(BehaviourError, match=r"^behaviour Shy: failed to restore its state: KeyError"):
        make_market(["alpha"], behaviour=Shy()).restore(state)
