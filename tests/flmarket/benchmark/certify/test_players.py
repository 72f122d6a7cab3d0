"""What players do who tell the truth, and what comes of it."""

from des.mechanisms.pay_as_offered import PayAsOffered
from des.money import MICRO
from flmarket.benchmark.certify.players import Bench
from flmarket.benchmark.certify.sampling import Sizes, sample


def test_a_service_offers_the_value_best_value_per_bid_first_as_far_as_its_budget_goes(bench) -> None:
    played = bench("pay-as-offered", [[4.0, 3.0, 2.0, 1.0]], [[2.0, 1.0, 1.0, 1.5]], [6.0]).play()
    assert played.offered.tolist() == [[-1, 3 * MICRO, 2 * MICRO, -1]]  # 3 for 1 before 2 for 1, then 4 is too much


def test_where_the_mechanism_keeps_budgets_it_names_all_that_are_worth_their_bid(bench) -> None:
    played = bench("proportional-share", [[4.0, 3.0, 2.0, 1.0]], [[2.0, 1.0, 1.0, 1.5]], [6.0]).play()
    assert played.offered.tolist() == [[4 * MICRO, 3 * MICRO, 2 * MICRO, -1]]


def test_where_prices_are_posted_it_offers_them_to_the_willing(bench) -> None:
    posted = bench("posted-price", [[4.0, 3.0, 1.9]], [[2.1, 1.0, 1.0]], price_per_sample=0.0004).play()
    assert posted.offered.tolist() == [[-1, 2 * MICRO, -1]]
    assert posted.price.tolist() == [[0, 2 * MICRO, 0]]


def test_who_is_refused_offers_again_where_the_mechanism_has_several_steps(bench) -> None:
    market = ([[4.0, 3.9], [3.0, 2.0]], [[1.0, 1.0], [1.0, 1.0]], [4.0, 3.0])
    once = bench("iterated", *market, steps=1).play()
    again = bench("iterated", *market, steps=2).play()
    assert once.offered.tolist() == [[4 * MICRO, -1], [3 * MICRO, -1]]
    assert again.offered.tolist() == [[4 * MICRO, -1], [3 * MICRO, 2 * MICRO]]
    assert again.served.tolist() == [[True, False], [False, True]]


def test_gains_are_true_values_less_prices_and_prices_less_true_costs_whatever_is_reported(bench) -> None:
    market = bench("uniform-price", [[4.0], [3.0]], [[1.0], [0.5]])
    played = market.play()
    assert played.price.tolist() == [[3 * MICRO], [0]]
    assert [played.gain("services", m, market.market) for m in (0, 1)] == [MICRO, 0]
    assert played.gain("clients", 0, market.market) == 2 * MICRO
    dear, gain = market.truly("clients", 0, (3_500_000, 3_000_000))
    assert dear.price.tolist() == [[3_500_000], [0]]
    assert gain == 2_500_000
    assert not market.truly("services", 0, (400_000,))[0].served[0].any()
    assert market.plays == 3


def test_what_a_mechanism_learns_on_the_bench_is_not_there_when_it_begins_afresh() -> None:
    class Counts(PayAsOffered):
        closed = 0

        def close(self, book, clearing):
            self.closed += 1

    given = Counts()
    bench = Bench(given, sample(Sizes(), 0, 0), rounds=3)
    bench.play()
    assert given.closed == 0
    assert bench.truly("clients", 0, tuple(bench.market.costs[:, 0].tolist()) * 2)[1] > 0
    assert given.closed == 0
