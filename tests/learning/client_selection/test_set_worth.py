"""The worth of clients together: eq. (6) of their union, and offers to those who add the most."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.observation import Privileged
from fl.data.dqi import JIAO, PUBLISHED, DQIParameters, dqi
from flmarket.core.plugin_options import OptionsError
from learning.client_selection.set_worth import ClientUnion, offer_to_union, union_worth
from learning.policy import POLICIES
from support.feedback import by_client
from support.tiers import examples

EASY = DQIParameters(eta1=0.2, eta2=math.log(2) / 2, eta3=0.01, eta4=0.5, eta5=0.0, eta6=1.0)
"""Worth .4 with 400 images at EMD 0, .45 with 1600: see tests/fl/data/test_dqi.py."""

DATA = st.lists(st.tuples(st.integers(1, 1000), st.floats(0, 1.8)), min_size=1, max_size=6)
PARAMETERS = st.sampled_from([EASY, JIAO, PUBLISHED])


def union_of(data, parameters, clients=None) -> ClientUnion:
    sizes, emds = np.array([size for size, _ in data]), np.array([emd for _, emd in data])
    union = ClientUnion(sizes, emds, parameters)
    for client in range(len(data)) if clients is None else clients:
        union.add(client)
    return union


@given(DATA, PARAMETERS)
def test_one_client_is_worth_its_dqi_or_nothing_as_in_a_sum(data, parameters) -> None:
    added = union_of(data, parameters, []).added_worth()
    assert added == pytest.approx([max(float(dqi(*client, parameters)), 0.0) for client in data], abs=1e-12)
    assert union_of(data, parameters, []).worth == 0


def test_a_set_is_worth_the_dqi_of_all_its_images_at_their_mean_emd() -> None:
    v = math.sqrt(math.log(2))  # alpha(v) = 1/4
    assert union_of([(400, 0.0), (1200, 0.0)], EASY).worth == pytest.approx(0.45, abs=1e-15)
    assert union_of([(400, 0.0), (1200, v / 0.75)], EASY).worth == pytest.approx(0.15, abs=1e-15)
    assert union_of([(100, 0.4), (400, 0.4)], JIAO).worth == pytest.approx(float(dqi(500, 0.4, JIAO)))
    assert union_of([(0, 0.0)], EASY).worth == 0  # a client that owns no image


@given(DATA, PARAMETERS, st.integers(1, 9))
def test_a_client_that_comes_as_two_halves_is_worth_the_same(data, parameters, part: int) -> None:
    (size, emd), *others = data
    halves = [(part, emd), (size, emd), *others]
    assert union_of(halves, parameters).worth == pytest.approx(
        union_of([(size + part, emd), *others], parameters).worth, abs=1e-12
    )


@given(DATA, st.integers(1, 1000), st.floats(0, 1))
def test_with_the_parameters_of_jiao_more_images_that_are_no_worse_add_worth(data, size: int, better: float) -> None:
    mean = sum(images * emd for images, emd in data) / sum(images for images, _ in data)
    union = union_of([*data, (size, mean * better)], JIAO, range(len(data)))
    assert union.added_worth()[-1] >= -1e-12


def test_with_the_published_parameters_a_second_client_adds_nothing() -> None:
    """There eta1 < 0, and DQI falls with the data size: docs/decisions/dqi.md."""
    assert union_of([(100, 0.4), (400, 0.4)], PUBLISHED, [0]).added_worth()[1] < 0


# At EMD 0 client 0 is worth .4 alone, 1 is worth .4398 alone and .45 with 0; at its EMD client 2 takes from all others.
THREE = Privileged(np.array([400, 1200, 1200]), np.array([0.0, 0.0, math.sqrt(math.log(2)) / 0.75]))
ALONE = 0.5 - 0.2 * 2 ** -(math.sqrt(12) / 2)


@pytest.mark.parametrize(
    ("bids", "budget", "offered"),
    [
        ([4, 2, 1], 10, {1: 2, 0: 4}),  # .1, .22 and .02 for the money, then .0026 of client 0
        ([4, 2, 1], 5, {1: 2}),  # client 0 no longer fits
        ([1, 2, 1], 10, {0: 1, 1: 2}),
        ([4, 2, 1e-6], 10, {2: 1e-6, 1: 2, 0: 4}),  # next to free: alone it is worth .02
        ([4, 0, 1], 10, {1: 0, 0: 4}),
    ],
)
def test_greedy_buys_who_adds_the_most_for_the_money(observe, context, bids, budget, offered) -> None:
    seen = replace(observe(bids, budget=budget), privileged=THREE)
    greedy = POLICIES.create("greedy", replace(context, dqi=EASY), together="union")
    assert by_client(greedy.act(seen)) == offered
    assert list(by_client(greedy.act(seen))) == list(offered)
    assert 1 not in by_client(greedy.act(replace(seen, offline=frozenset({1}))))


def test_worth_offers_what_each_adds_so_that_all_are_paid_what_they_are_worth_together(observe, context) -> None:
    """Half-way cost 4, half-way DQI .5: at a markup of 1.5, a DQI of 1 is worth 12."""
    seen = replace(observe([0.1, 0.05, 1], budget=100), privileged=THREE)
    worth = POLICIES.create("worth", replace(context, dqi=EASY), together="union")
    offered = by_client(worth.act(seen))
    assert offered == pytest.approx({1: 12 * ALONE, 0: 12 * (0.45 - ALONE)}, abs=1e-6)
    assert sum(offered.values()) == pytest.approx(12 * 0.45, abs=2e-6)
    dear = replace(seen, bids=np.array([[9, 9, 9], [3, 2, 1]]))
    assert list(by_client(worth.act(dear))) == [1]  # client 0 asks for more than the .12 that it adds
    assert worth.act(replace(seen, budget=5.0)).clients.tolist() == [0]
    assert worth.act(replace(seen, budget=5.0, over_budget=True)).clients.tolist() == [1, 0]


@examples(60)
@given(DATA, st.lists(st.integers(0, 9), min_size=6, max_size=6), st.integers(1, 30), PARAMETERS)
def test_each_offer_is_the_best_addition_and_none_is_left_out(observe, data, asked, budget: int, parameters) -> None:
    bids = asked[: len(data)]
    hidden = Privileged(*(np.array(column) for column in zip(*data, strict=True)))
    offer = offer_to_union(replace(observe(bids, budget=budget), privileged=hidden), parameters)
    left, taken = budget, []

    def added() -> dict[int, float]:
        now = worth_of(taken)
        rest = [c for c in range(len(data)) if c not in taken and bids[c] <= left]
        return {c: (worth_of([*taken, c]) - now) / max(bids[c], 1e-6) for c in rest}

    def worth_of(clients) -> float:
        sizes, emds = [data[c][0] for c in clients], [data[c][1] for c in clients]
        if not clients:
            return 0.0
        mean = sum(size * emd for size, emd in zip(sizes, emds, strict=True)) / sum(sizes)
        return max(float(dqi(sum(sizes), mean, parameters)), 0.0)

    for client, payment in by_client(offer).items():
        assert payment == bids[client]
        assert added()[client] >= max(added().values()) - 1e-5
        left, taken = left - bids[client], [*taken, client]
    assert all(of * max(bids[c], 1e-6) <= 1e-12 for c, of in added().items())
    best = max(worth_of(them) for k in range(len(data) + 1) for them in combinations(range(len(data)), k)
               if sum(bids[c] for c in them) <= budget)  # fmt: skip
    assert worth_of(taken) <= best + 1e-12


@pytest.mark.parametrize("policy", ["greedy", "worth"])
def test_a_market_that_hides_data_and_words_that_mean_nothing_are_refused(context, policy: str) -> None:
    with pytest.raises(
        OptionsError, match=r'together = "union" values .*, which this market hides .*; set market.data'
    ):
        POLICIES.create(policy, context, together="union")
    with pytest.raises(OptionsError, match="together must be additive or union, not 'jiao'"):
        POLICIES.create(policy, context, together="jiao")
    assert POLICIES.create(policy, context, together="additive")


def test_values_of_clients_one_by_one_are_no_values_of_a_union(context) -> None:
    with pytest.raises(OptionsError, match="values are each client's own"):
        POLICIES.create("worth", replace(context, dqi=EASY), values=[1.0] * 5, together="union")


def test_sums_of_sets_are_valued_at_once() -> None:
    assert union_worth([0, 400, 1600], [0, 0, 0], EASY) == pytest.approx([0, 0.4, 0.45])


def test_a_client_that_asks_less_comes_first_and_is_offered_more(observe) -> None:
    """So what a client is worth moves with its bid, unlike its own DQI, and the truth need not be its best bid."""
    alike = Privileged(np.array([400, 400]), np.array([0.4, 0.4]))
    late, early = (
        by_client(offer_to_union(replace(observe(bids, budget=200), privileged=alike), JIAO, 100.0))
        for bids in ([2, 3], [2, 1])
    )
    assert early[1] > late[1] > 3
