"""Bids and reports of clients: each behaviour in small examples, and what all of them keep."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.behaviour import BEHAVIOURS, Behaviour, BehaviourError, Outcomes, Setting
from des.behaviours.adaptive import Adaptive
from des.behaviours.markup import Markup
from des.behaviours.misreport import Misreport
from des.behaviours.ring import Ring
from des.behaviours.truthful import Truthful
from des.clients.data_tables import Group, PopulationSpec
from des.clients.population import Population
from des.costs.linear import Linear
from des.market import Market
from des.money import MicroArray
from fl.data.dqi import PUBLISHED, dqi
from fl.data.emd import largest_emd
from flmarket.core.plugin_options import OptionsError
from flmarket.testing import check_behaviour
from support.tiers import examples

MakeMarket = Callable[..., Market]

COSTS = np.array([[2_000_000, 4_000_000, 1, 0], [6_000_000, 3_000_001, 5_000_000, 1_000_000]])
SETTING = Setting(seed=3, services=2, clients=4, cores=1, highest=np.array([10_000_000, 10_000_000]))

EXAMPLES: dict[str, dict[str, Any]] = {
    "truthful": {},
    "markup": {"share": [0.1, 0.5]},
    "adaptive": {"exploration": 0.5},
    "misreport": {"size": 0.5, "emd": -0.5, "share": 0.5},
    "ring": {"size": 3},
}


def begun(behaviour: Behaviour, setting: Setting = SETTING) -> Any:
    behaviour.begin(setting)
    return behaviour


def outcomes(service: int, client: int, paid: int, cost: int) -> Outcomes:
    return Outcomes(*(np.array([value]) for value in (service, client, True, paid, cost)))


def test_truthful_clients_bid_their_costs() -> None:
    assert begun(Truthful()).bids(1, COSTS) is COSTS


def test_the_default_markup_is_a_fifth_of_the_cost() -> None:
    assert begun(Markup()).bids(1, COSTS)[0, 0] == 2_400_000


def test_a_fixed_markup_is_the_same_share_for_all_and_rounded_half_even() -> None:
    bids = begun(Markup(share=0.5)).bids(1, COSTS)
    assert bids.tolist() == [[3_000_000, 6_000_000, 1, 0], [9_000_000, 4_500_001, 7_500_000, 1_500_000]]


def test_a_markup_from_a_range_is_drawn_for_each_client_once() -> None:
    clients = begun(Markup(share=[0.1, 0.3]), replace(SETTING, clients=200, services=1))
    costs = np.full((1, 200), 1_000_000)
    shares = clients.bids(1, costs)[0] / 1e6 - 1
    assert 0.1 <= shares.min() < 0.12 < 0.28 < shares.max() <= 0.3
    assert (clients.bids(7, costs) == clients.bids(1, costs)).all()


class TestAdaptive:
    def test_at_first_all_markups_are_equally_likely(self) -> None:
        assert begun(Adaptive(markups=[0.0, 0.1, 0.5, 1.0])).chances.tolist() == [[0.25] * 4] * 4

    def test_a_profit_raises_the_weight_of_the_markup_that_earned_it(self) -> None:
        """By hand: gain 0.8 of at most 1.0 * 10, chosen with probability 1/2: its weight grows by exp(0.2 * 1.6/2)."""
        clients = begun(Adaptive(markups=[0.0, 1.0], exploration=0.2))
        dear = clients.bids(1, COSTS) > COSTS
        service, client = np.argwhere(dear)[0].tolist()
        clients.close(1, outcomes(service, client, paid=10_000_000, cost=2_000_000))
        weight = np.exp(0.2 / 2 * 0.8 / 0.5)
        expected = 0.8 * weight / (1 + weight) + 0.1
        assert clients.chances[client] == pytest.approx([1 - expected, expected])
        others = np.delete(clients.chances, client, axis=0)
        assert (others == 0.5).all()

    def test_the_plays_of_a_round_go_by_the_weights_of_its_beginning(self) -> None:
        """EXP3 learns after each play. Two plays earned the most: the second would have counted 1 / .5399, not 1 / .5.

        The dear markup is then chosen with .579 in place of .576.
        """
        clients = begun(Adaptive(markups=[0.0, 1.0], exploration=0.2), replace(SETTING, clients=200))
        dear = (clients.bids(1, np.full((2, 200), 1_000_000)) > 1_000_000).all(axis=0)
        client = int(dear.argmax())
        both = Outcomes(np.array([0, 1]), np.full(2, client), np.ones(2, bool), np.full(2, 10**7), np.zeros(2, int))
        clients.close(1, both)

        def chance(log_weight: float) -> float:
            return float(0.8 / (1 + np.exp(-log_weight)) + 0.1)

        assert clients.chances[client, 1] == pytest.approx(chance(0.2 / 2 / 0.5 * 2))
        after_one = chance(0.2)
        theirs = chance(0.2 + 0.2 / 2 / after_one)
        assert clients.chances[client, 1] == pytest.approx(0.5790, abs=5e-5)
        assert theirs == pytest.approx(0.5761, abs=5e-5)

    def test_a_loss_or_no_award_teaches_nothing(self) -> None:
        clients = begun(Adaptive())
        refused = replace(outcomes(0, 1, paid=0, cost=5), served=np.array([False]))
        clients.close(1, refused)
        clients.close(2, outcomes(0, 1, paid=1, cost=5))  # no market pays less than a bid
        assert (clients.chances == 0.2).all()

    def test_a_client_learns_to_ask_as_much_as_is_paid(self) -> None:
        """A service takes every bid of at most 1.4 times the cost: the best of five markups is 0.4."""
        clients = begun(Adaptive(exploration=0.1), replace(SETTING, clients=50))
        costs = np.full((2, 50), 5_000_000)
        for n in range(1, 601):
            bids = clients.bids(n, costs)
            services, members = np.nonzero(bids <= 7_000_000)
            paid = bids[services, members]
            served = np.ones(len(paid), dtype=np.bool_)
            clients.close(n, Outcomes(services, members, served, paid, costs[services, members]))
        assert clients.chances.mean(axis=0).argmax() == 3
        assert clients.chances.mean(axis=0)[3] > 0.5

    def test_its_state_is_json_and_brings_back_the_same_bids(self) -> None:
        clients, again = begun(Adaptive()), begun(Adaptive())
        for n in range(1, 20):
            clients.close(n, outcomes(0, n % 4, paid=9_000_000, cost=2_000_000))
        assert (clients.chances != again.chances).any()
        again.restore(json.loads(json.dumps(clients.state())))
        assert (clients.chances == again.chances).all()
        assert (clients.bids(20, COSTS) == again.bids(20, COSTS)).all()


class TestRing:
    def test_members_take_turns_at_the_rings_highest_cost_and_cover_each_other(self) -> None:
        clients = begun(Ring(size=4, cover=0.5))
        turns = np.array([clients.turn(n) for n in range(1, 5)])
        assert (turns.sum(axis=0) == 1).all()  # each once in four rounds
        assert (turns.sum(axis=1) == 1).all()  # one in each round
        bids = clients.bids(1, COSTS)
        assert bids[:, turns[0]].T.tolist() == [[4_000_000, 6_000_000]]
        assert (bids[:, ~turns[0]] == [[6_000_000] * 3, [9_000_000] * 3]).all()

    def test_a_client_that_is_left_over_is_alone_and_asks_its_cost(self) -> None:
        clients = begun(Ring(size=3), SETTING)
        asked = clients.bids(1, COSTS)
        assert ((asked == COSTS).all(axis=0)).sum() == 1


class TestMisreport:
    @pytest.fixture
    def population(self, paper_clients: PopulationSpec) -> Population:
        behaviour = Misreport(size=1.0, emd=-0.25, share=0.5)
        return Population(replace(paper_clients, behaviour=behaviour), [10, 10], [PUBLISHED, PUBLISHED], seed=1)

    def test_services_see_the_bid_and_dqi_of_what_is_reported(
        self, population: Population, paper_clients: PopulationSpec
    ) -> None:
        world = population.draw(4)
        lies = world.data_size != world.held.data_size
        assert 0 < lies.any(axis=0).sum() < 20
        assert (lies.all(axis=0) == lies.any(axis=0)).all()  # a client always lies, or never
        assert (world.data_size[lies] == 2 * world.held.data_size[lies]).all()
        assert world.emd[lies] == pytest.approx(0.75 * world.held.emd[lies])
        assert world.dqi == pytest.approx(dqi(world.data_size, world.emd, PUBLISHED))
        assert world.bid == pytest.approx(1e6 * (0.025 * world.data_size - world.emd), abs=1)
        honest = Population(paper_clients, [10, 10], [PUBLISHED, PUBLISHED], seed=1).draw(4)
        for name in ("data_size", "emd", "cost"):
            assert (getattr(world.held, name) == getattr(honest.held, name)).all()
        assert (world.bid[~lies] == honest.bid[~lies]).all()

    @pytest.mark.parametrize("labels", [10, 26, 37, 47, 62])
    def test_no_emd_above_the_largest_one_is_reported_however_many_labels_there_are(
        self, labels: int, paper_clients: PopulationSpec
    ) -> None:
        """With 26 labels (EMNIST letters) the largest EMD is rounded up, to 1.92307692308."""
        spec = replace(paper_clients, behaviour=Misreport(emd=4.0))
        emd = Population(spec, [labels], [PUBLISHED], seed=1).draw(1).emd
        assert emd.max() == pytest.approx(largest_emd(labels))
        assert emd.max() <= largest_emd(labels)

    def test_ranges_cover_what_is_reported(self, population: Population) -> None:
        world = population.draw(1)
        for values, (low, high) in ((world.dqi, population.seen_range), (world.bid, population.bid_range)):
            assert ((values >= low[:, None]) & (values <= high[:, None])).all()
        assert population.data_sizes == {100, 200, 300, 400, 600, 800}

    def test_training_uses_what_is_there_and_the_server_weighs_by_what_it_was_told(
        self, make_market: MakeMarket, make_offer: Callable[..., Any], stub_federation: Any
    ) -> None:
        federation = stub_federation()
        market = make_market(["alpha"], federation=federation, behaviour=Misreport(size=1.0), rounds=1)
        market.open_round()
        report = market.close_round({"alpha": make_offer((0, 6.0))})
        [(_, [job])] = federation.asked
        assert (job.size, job.weight) == (100, 200)
        [offer] = report.offers
        assert (offer.data_size, offer.bid) == (200, 4_600_000)
        assert offer.end == 1_500_000  # it works for as long as its 100 images take
        [row] = report.clients
        assert (row.data_size, row.reported_size, row.cost, row.profit) == (100, 200, 2_100_000, 3_900_000)


def test_truthful_clients_have_no_report_of_their_own(make_market: MakeMarket, make_offer: Callable[..., Any]) -> None:
    market = make_market(["alpha"], rounds=1)
    market.open_round()
    assert market.close_round({"alpha": make_offer((0, 2.5))}).clients is None


def test_a_behaviour_built_on_truthful_is_not_taken_for_it(
    make_market: MakeMarket, make_offer: Callable[..., Any]
) -> None:
    """Its clients may ask more than their costs, so that the run has clients.csv, which verify wants to see."""

    class Doubles(Truthful):
        def bids(self, round_: int, costs: MicroArray) -> MicroArray:
            return 2 * costs

    market = make_market(["alpha"], rounds=1, behaviour=Doubles())
    market.open_round()
    clients = market.close_round({"alpha": make_offer((0, 6.0))}).clients
    assert clients is not None
    assert clients[0].bid == 2 * clients[0].cost


@examples(60)
@given(
    kind=st.sampled_from(sorted(BEHAVIOURS.builtin)),
    seed=st.integers(0, 50),
    rounds=st.integers(1, 5),
    sizes=st.lists(st.integers(10, 500), min_size=1, max_size=3, unique=True),
    per_emd=st.floats(0, 0.1),
)
def test_bids_are_never_negative_and_always_within_their_range(
    kind: str, seed: int, rounds: int, sizes: list[int], per_emd: float
) -> None:
    behaviour = BEHAVIOURS.create(kind, **EXAMPLES[kind])
    spec = PopulationSpec(
        2, (Group(7, tuple(sizes), (0.2, 0.8), Linear(per_sample=0.025, per_emd=per_emd)),), behaviour
    )
    population = Population(spec, [10, 4], [PUBLISHED, PUBLISHED], seed)
    low, high = population.bid_range
    for n in range(1, rounds + 1):
        world = population.draw(n)
        assert (world.bid >= 0).all()
        assert ((world.bid >= low[:, None]) & (world.bid <= high[:, None])).all()
        if not behaviour.misreports:
            assert (world.bid >= world.held.cost).all()
        paid = [(f"s{m}", c, int(world.bid[m, c]) if c % 2 else None) for m in (0, 1) for c in range(7)]
        population.close(n, paid, ["s0", "s1"])
        assert (population.draw(n + 1).held.cost == population.held(n + 1).cost).all()


@pytest.mark.parametrize("kind", BEHAVIOURS.builtin)
def test_every_behaviour_keeps_its_contracts(kind: str) -> None:
    check_behaviour(BEHAVIOURS.load(kind), **EXAMPLES[kind])


@pytest.mark.parametrize(
    ("kind", "options", "problem"),
    [
        ("markup", {"share": -0.1}, "share must be a number from 0 to 5, or [lowest, highest], not -0.1"),
        ("markup", {"share": [0.3, 0.1]}, "share must be a number from 0 to 5, or [lowest, highest], not [0.3, 0.1]"),
        ("markup", {"share": [0.1]}, "share must be a number from 0 to 5, or [lowest, highest], not [0.1]"),
        ("markup", {"share": True}, "share must be a number from 0 to 5, or [lowest, highest], not True"),
        ("adaptive", {"markups": [0.1]}, "markups must be 2 to 20 numbers from 0 to 5, each above the one before, "),
        ("adaptive", {"markups": [0.2, 0.1]}, "markups must be 2 to 20 numbers from 0 to 5, each above the one before"),
        ("adaptive", {"exploration": 0}, "exploration must be a number above 0 and at most 1, not 0"),
        ("misreport", {}, "nothing is misreported; set size or emd to a bias other than 0"),
        ("misreport", {"size": -1}, "size must be a number above -1 and at most 4, not -1"),
        ("misreport", {"emd": 5}, "emd must be a number from -1 to 4, not 5"),
        ("misreport", {"emd": 0.5, "share": 2}, "share must be a number from 0 to 1, not 2"),
        ("ring", {"size": 1}, "size must be a whole number of at least 2, not 1"),
        ("ring", {"cover": -1}, "cover must be a number from 0 to 5, not -1"),
        ("truthful", {"share": 1}, " takes no option 'share'; it has none"),
    ],
)
def test_options_that_a_behaviour_does_not_take(kind: str, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(OptionsError) as caught:
        BEHAVIOURS.create(kind, **options)
    assert str(caught.value).startswith(f"behaviour '{kind}'{'' if problem[0] == ' ' else ': '}{problem}")


class Broken(Truthful):
    misreports = True

    def __init__(self, **doing: Any) -> None:
        self.doing = doing

    def bids(self, round_, costs):
        return self.doing.get("bids", costs)

    def report(self, data_size, emd, largest_emd):
        return self.doing.get("report", (data_size, emd))

    def misreporting(self, round_):
        return self.doing.get("misreporting")


@pytest.mark.parametrize(
    ("doing", "problem"),
    [
        ({"bids": np.zeros((1, 3))}, "bids(), round 1: must return whole numbers of shape (1, 3), "),
        ({"bids": np.zeros((2, 3), np.int64)}, "bids(), round 1: must return whole numbers of shape "),
        ({"bids": np.full((1, 3), -1)}, "bids(), round 1: a bid is negative"),
        ({"report": (np.zeros((1, 1), np.int64), np.zeros((1, 1)))}, "report(): must return whole numbers of "),
        ({"report": 3}, "report(): must return whole numbers of "),
        ({"misreporting": [True]}, "misreporting(), round 1: must return 3 truth values, one for "),
    ],
)
def test_what_a_behaviour_does_wrong_is_one_line_that_names_it(
    make_market: MakeMarket, pay_the_bid: Callable[..., Any], doing: dict[str, Any], problem: str
) -> None:
    def play() -> None:
        market = make_market(["alpha"], behaviour=Broken(**doing))
        market.close_round({"alpha": pay_the_bid(market.open_round()["alpha"])})

    with pytest.raises(BehaviourError) as caught:
        play()
    message, places = re.subn(rf" \({re.escape(__file__)}:\d+\)", "", str(caught.value))
    assert message.startswith(f"behaviour Broken.{problem}")
    assert places == 1
