"""Every policy: options that cannot be, offers that are valid in any market, and what is remembered across a pause."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.mechanism import MECHANISMS
from des.money import MICRO, to_micro
from des.observation import Offer, Privileged
from des.offer_checks import check_offer
from flmarket.core.plugin_options import OptionsError
from flmarket.testing import check_policy
from learning.play_round import play, play_round
from learning.policy import POLICIES, Policy
from learning.seats import seat
from support.feedback import feedback_on
from support.tiers import slow

NAMES = ("alpha", "beta", "gamma")
# mahdrl-paper has agents for the services of the paper's market alone; mahdrl/paper plays it there.
PLAYED = sorted(set(POLICIES.builtin) - {"mahdrl-paper"})
LEARNS_PRICES = ["resolving", "mirror", "bwk"]
FIELD = ["dearest", "outbid", "fmore", "contribution", "stackelberg"]
BANDITS = ["ucb", "oort", "pacing"]


@pytest.mark.parametrize(
    ("policy", "options", "problem"),
    [
        ("dearest", {"k": 0}, "k must be a whole number of at least 1, not 0"),
        ("dearest", {"k": 1.5}, "k must be a whole number of at least 1, not 1.5"),
        ("dearest", {"k": True}, "k must be a whole number of at least 1, not True"),
        ("fmore", {"weight": -1}, "weight must be a number from 0 to 1000, not -1"),
        ("fmore", {"weight": float("nan")}, "weight must be a number from 0 to 1000, not nan"),
        ("fmore", {"weight": "much"}, "weight must be a number from 0 to 1000, not 'much'"),
        ("fmore", {"payment": "third"}, "payment must be first-score or second-score, not 'third'"),
        ("fmore", {"winners": 0}, "winners must be a whole number of at least 1, not 0"),
        ("contribution", {"rate": 0}, "rate must be a number above 0 and at most 1, not 0"),
        ("contribution", {"rate": "fast"}, "rate must be a number above 0 and at most 1, not 'fast'"),
        ("contribution", {"bonus": 1}, "bonus must be a number of at least 0 and below 1, not 1"),
        ("stackelberg", {"weight": 0}, "weight must be a finite number above 0, not 0"),
        ("stackelberg", {"weight": float("inf")}, "weight must be a finite number above 0, not inf"),
        *((policy, {"steepness": -1}, "steepness must be a number from 0 to 10, not -1") for policy in LEARNS_PRICES),
        ("resolving", {"steepness": float("nan")}, "steepness must be a number from 0 to 10, not nan"),
        ("mirror", {"trust": "much"}, "trust must be a number from 0 to 10, not 'much'"),
        ("mirror", {"trust": True}, "trust must be a number from 0 to 10, not True"),
        ("resolving", {"prior": 0}, "prior must be a number from 0.01 to 1e+09, not 0"),
        ("mirror", {"rate": 11}, "rate must be a number from 0 to 10, not 11"),
        ("bwk", {"haste": float("inf")}, "haste must be a number from 0 to 10, not inf"),
        ("bwk", {"exploration": -0.1}, "exploration must be a number from 0 to 10, not -0.1"),
        ("worth", {"markup": float("nan")}, "markup must be a finite number above 0"),
        ("ucb", {"exploration": -0.1}, "exploration"),
        ("ucb", {"exploration": float("nan")}, "exploration"),
        ("ucb", {"discount": 0}, "discount"),
        ("ucb", {"discount": "much"}, "discount"),
        ("oort", {"exploration": 1.5}, "exploration"),
        ("oort", {"exploration": float("nan")}, "exploration"),
        ("pacing", {"rate": 0}, "rate"),
        ("pacing", {"tolerance": 1}, "tolerance"),
        ("pacing", {"limit": -1}, "limit"),
    ],
    ids=str,
)
def test_impossible_options_are_named_with_policy_and_service(make_context, policy, options, problem) -> None:
    with pytest.raises(OptionsError) as caught:
        POLICIES.create(policy, make_context(), **options)
    assert str(caught.value).startswith(f"policy {policy!r} of service 's0': {problem}")


clients = st.lists(
    st.tuples(
        st.one_of(st.integers(0, 9_000_000), st.just(10_000_000_000_000)),  # the most that an offer may name
        st.integers(0, 9_000_000),
        st.one_of(st.sampled_from([-0.5, 0.0, 1e-12, 0.3]), st.floats(-1, 3)),
        st.booleans(),
        st.booleans(),
    ),
    min_size=1,
    max_size=10,
)
LIMITS = {
    "steepness": st.sampled_from([0, 2, 10]),
    "trust": st.sampled_from([0, 10]),
    "prior": st.sampled_from([0.01, 1e9]),
    "rate": st.sampled_from([0, 10]),
    "haste": st.sampled_from([0, 1, 10]),
}
OPTIONS = {
    "dearest": st.sampled_from([{}, {"k": 2}]),
    "fmore": st.sampled_from(
        [{}, {"payment": "second-score"}, {"weight": 1000, "winners": 2, "payment": "second-score"}]
    ),
    "contribution": st.sampled_from([{}, {"bonus": 0}, {"bonus": 0.9}]),
    "stackelberg": st.sampled_from([{}, {"weight": 0.1}, {"weight": 1e9}]),
    **dict.fromkeys(LEARNS_PRICES, st.fixed_dictionaries({}, optional=LIMITS)),
}
"""All ways in which a policy can be played that differ in their arithmetic."""


@pytest.mark.parametrize("policy", [*FIELD, *LEARNS_PRICES, *BANDITS, "worth"])
@given(
    rounds=st.lists(clients, min_size=1, max_size=4),
    data=st.data(),
    budget=st.integers(0, 20_000_000),
    total=st.one_of(st.none(), st.integers(0, 60_000_000)),
    accuracy=st.floats(0, 1),
    cores=st.integers(1, 3),
)
def test_offers_are_valid_in_any_market(
    make_observation, make_context, policy, rounds, data, budget, total, accuracy, cores
) -> None:
    """Constraints (4) and (5), nobody who is offline, the same offer when asked again; whatever was learned before."""
    count = min(len(market) for market in rounds)
    options = data.draw(OPTIONS.get(policy, st.just({})))
    player = POLICIES.create(policy, make_context(count, services=2, cores=cores), **options)
    for number, market in enumerate(rounds, 1):
        own, other, dqi, online, accepts = (list(column) for column in zip(*market[:count], strict=True))
        allowed = budget if total is None else min(budget, total)
        bids = [np.array(own) / MICRO, np.array(other) / MICRO]
        seen = make_observation(bids, dqi, budget=allowed / MICRO, round_=number, cores=cores, accuracy=accuracy)
        offline = frozenset(client for client, there in enumerate(online) if not there)
        seen = replace(seen, offline=offline, total_left=None if total is None else total / MICRO)
        offer = player.act(seen)
        checked = check_offer(
            offer, policy=policy, service="s0", round_=number, bids=to_micro(seen.own_bids), budget=allowed
        )
        assert not offline & set(checked.clients.tolist())
        again = player.act(seen)
        assert (again.clients.tolist(), again.payments.tolist()) == (offer.clients.tolist(), offer.payments.tolist())
        feedback = feedback_on(offer, [accepts[client] for client in offer.clients.tolist()], accuracy)
        player.learn(seen, offer, feedback)
        if total is not None:
            total -= int(to_micro(feedback.paid).sum())


ALIKE = {"random", "lcfa", "greedy", "d-first", "mahdrl-single", "mahdrl-paper"}
ALIKE |= {"rtb-const", "rtb-mcpc", "rtb-ortb", "rtb-rand"}
"""Policies that remember nothing and whose code is that of ``hqfa`` but for an order, or that of ``rtb-lin`` but for a
formula, or agents that take seconds."""


@pytest.mark.parametrize("policy", [*sorted(set(POLICIES.builtin) - ALIKE), *slow(*sorted(ALIKE))])
def test_every_policy_keeps_its_contracts_and_can_be_resumed(policy) -> None:
    check_policy(POLICIES.load(policy))


@pytest.mark.parametrize("policy", POLICIES.builtin)
def test_who_learns_says_what_it_remembers(policy) -> None:
    kind = POLICIES.load(policy)
    assert kind.learn is Policy.learn or kind.state is not Policy.state


@pytest.mark.parametrize("policy", LEARNS_PRICES)
@pytest.mark.parametrize("mechanism", list(MECHANISMS.names()))
def test_who_learns_prices_plays_under_every_mechanism(make_market, policy, mechanism) -> None:
    needed = {"posted-price": {"price_per_sample": 0.03}, "scheduler": {"order": "random"}}
    market = make_market(
        NAMES, rounds=3, cores=1, count=8, mechanism=MECHANISMS.load(mechanism)(**needed.get(mechanism, {}))
    )
    reports = []
    play(market, seat(market, dict.fromkeys(NAMES, policy)), [reports.append])
    assert sum(s.served for report in reports for s in report.services) > 0


@pytest.mark.parametrize("policy", PLAYED)
def test_every_policy_wants_somebody_where_there_is_money(make_market, policy) -> None:
    market = make_market(NAMES)
    assert play_round(market, seat(market, dict.fromkeys(NAMES, policy))).offers


READS_BIDS = {"dearest", "pacing", "oort", "ucb", *LEARNS_PRICES, "mahdrl", "mahdrl-single"}
"""Those that take a bid for a sign of the data behind it, and say so: docs/extending/policy.md lists them."""


@pytest.mark.parametrize("policy", sorted(set(PLAYED) - READS_BIDS))
@given(
    market=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=2, max_size=8),
    raised=st.integers(0, 7),
    by=st.integers(1, 60),
    budget=st.integers(1, 40),
    cores=st.integers(1, 2),
)
def test_what_a_client_asks_moves_nobodys_value_of_any_client(
    make_observation, make_context, policy, market, raised, by, budget, cores
) -> None:
    """Who asks more is wanted no sooner, and the others stay in their order; what nobody can pay changes nothing.

    Of stackelberg it may: at one price for all quality, those take part as well whom it cannot pay.
    """
    raised %= len(market)
    bids, dqi = np.array(market).T / [[1.0], [10.0]]
    there = np.arange(len(bids)) == raised
    asked = [bids, bids + by / 10 * there, bids + budget * there, bids + (budget + by) * there]
    hidden = Privileged((100 * dqi).astype(int), dqi, {"s1": Offer.none()})
    options = {"weight": 1.0} if policy == "stackelberg" else {}  # little enough that values, too, limit what it buys
    player = POLICIES.create(policy, make_context(len(bids), services=2, cores=cores), **options)
    made = [
        player.act(make_observation([own, bids], dqi, budget=budget, cores=cores, privileged=hidden)) for own in asked
    ]
    first, dearer, beyond, further = ([*zip(it.clients.tolist(), it.payments.tolist(), strict=True)] for it in made)
    before, after = ([client for client, _ in offer] for offer in (first, dearer))
    assert raised in before or raised not in after
    both = {*before} & {*after} - {raised}
    assert [client for client in before if client in both] == [client for client in after if client in both]
    if policy != "stackelberg":
        assert beyond == further


# stackelberg names one price for all that are alike, or none; mahdrl-single was trained to take them by number.
@pytest.mark.parametrize("policy", sorted(set(PLAYED) - {"stackelberg", "mahdrl-single"}))
def test_clients_that_are_alike_are_all_chosen_at_some_time_whatever_their_numbers(make_market, policy: str) -> None:
    """Ten clients of one kind, of whom the budget pays five or less: of 60 rounds each is offered something in some."""
    market = make_market(["alpha"], count=10, cores=1, rounds=60, data_sizes=(200,), emds=(0.4,))
    seated = seat(market, {"alpha": policy})
    offered: set[int] = set()
    while not market.finished:
        report = play_round(market, seated)
        assert len(report.offers) < 10
        offered.update(offer.client for offer in report.offers)
    assert offered == set(range(10))
