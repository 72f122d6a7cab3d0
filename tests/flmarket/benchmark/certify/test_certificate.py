"""A certificate counts what was attacked and what was found; equal plans give equal certificates."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from des.allocation import allocate
from des.mechanism import MECHANISMS, Clearing, ClearingError, Mechanism
from des.mechanisms.posted_price import PostedPrice
from des.money import text, to_micro
from flmarket.benchmark.certify.certificate import AttackPlan, _as_two, certify
from flmarket.benchmark.certify.sampling import IMAGES, MOST_BID, TICK, Dice, SampledMarket, Sizes, doubled, sample
from flmarket.benchmark.certify.witness import write_witness
from flmarket.core.errors import InputError


def test_equal_plans_find_the_same() -> None:
    plan = AttackPlan("uniform-price", shape=Sizes(2, 2), markets=3, tries=20)
    first, again = certify(plan), certify(plan)
    assert first == again
    assert (
        certify(AttackPlan("uniform-price", shape=Sizes(2, 2), markets=3, tries=20, seed=1)).attacked != first.attacked
    )


def test_every_party_of_every_market_is_attacked() -> None:
    certificate = certify(AttackPlan("pay-as-offered", shape=Sizes(2, 3), markets=2, tries=5))
    assert [len(gains) for gains in certificate.attacked.values()] == [4, 6]
    assert certificate.clearings >= 10 * 5


def test_what_it_says() -> None:
    certificate = certify(AttackPlan("uniform-price", shape=Sizes(2, 2, 1), markets=3, tries=40))
    assert certificate.title() == (
        "uniform-price: 3 markets with 2 services, 2 clients, 1 core and budgets that can bind; seed 0, "
        "at most 40 misreports for each party"
    )
    found = {name: (verdict, words) for name, verdict, words in certificate.rows()}
    held = f"in all {certificate.clearings:,} clearings"
    assert found["individual rationality of clients"] == ("held", f"price at least the bid {held}")
    assert found["individual rationality of services"] == ("held", f"price at most the offer {held}")
    assert found["budget balance"] == ("held", f"clients get what services pay, within the budgets, {held}")
    gains = certificate.gaining("clients")
    largest = max(gain.amount for gain in certificate.attacked["clients"])
    verdict, words = found["truthfulness of clients"]
    assert verdict == "fails"
    assert words.startswith(f"{len(gains)} of 6 clients gain; the largest gain is {largest / 1_000_000:.6f} (")
    verdict, words = found["regret of truth of clients"]
    mean = sum(gain.amount for gain in certificate.attacked["clients"]) / 6
    assert float(verdict) == pytest.approx(mean / 1_000_000, abs=2e-6)
    assert words == "mean over the 6 clients of the most that another report was found to add, at least"


def test_the_regret_of_truth_is_what_the_one_client_could_have_asked_for() -> None:
    """One client, one service that offers its value: alone, it is paid that whatever it asks below, so it regrets 0."""
    alone = certify(AttackPlan("pay-as-offered", shape=Sizes(1, 1, budgets=False), markets=4, tries=40))
    assert "regret of truth of clients" not in [name for name, *_ in alone.rows()]
    verdict = {name: it for name, it, _ in alone.rows()}["regret of truth of services"]
    paid = [gain for gain in alone.attacked["services"] if gain.truth[0] > gain.market.costs[0, 0]]
    could_save = [int(gain.truth[0] - gain.market.costs[0, 0]) for gain in paid]  # by reporting the client's bid
    assert verdict == text(sum(could_save) // 4)


def test_where_nothing_is_found_it_says_how_many_were_attacked() -> None:
    plan = AttackPlan("posted-price", {"price_per_sample": 0.0004}, Sizes(2, 2, budgets=False), markets=2, tries=10)
    assert list(certify(plan).rows())[3:] == [
        (
            "truthfulness of services",
            "no gain found",
            "4 services attacked in one round; all data sets have 5,000 images",
        ),
        (
            "truthfulness of clients",
            "no gain found",
            "4 clients attacked in one round; all data sets have 5,000 images",
        ),
    ]


def test_a_mechanism_of_a_users_own_that_breaks_a_rule_is_named_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Generous(Mechanism):
        """Pays more than was offered."""

        def clear(self, book):
            core = allocate(book.services, book.clients, book.payments, book.cores, book.tie_order)
            return Clearing(core, book.payments + 1)

    monkeypatch.setattr(MECHANISMS, "_registered", {})
    MECHANISMS.register("generous", Generous)
    with pytest.raises(
        ClearingError, match=r"^mechanism Generous\.clear\(\) .*, client \d: the price .* is above the offer"
    ):
        certify(AttackPlan("generous", markets=1))


class FollowsBids(PostedPrice):
    """A posted price that is the mean bid of the round before: in any one round, no report moves it."""

    def ask(self, bids, data_size):
        self.mean_bid = int(bids.mean())
        return super().ask(bids, data_size)

    def close(self, book, clearing):
        self.price = self.mean_bid // IMAGES


@pytest.mark.slow
def test_a_rule_that_remembers_is_attacked_over_several_rounds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(MECHANISMS, "_registered", {})
    MECHANISMS.register("follows-bids", FollowsBids)
    plan = AttackPlan("follows-bids", {"price_per_sample": 0.0004}, Sizes(2, 3, budgets=False), markets=3, tries=60)
    *_, clients = certify(plan).rows()
    assert clients == (
        "truthfulness of clients", "no gain found", "9 clients attacked in one round; all data sets have 5,000 images"
    )  # fmt: skip
    longer = replace(plan, rounds=10)
    found = certify(longer)
    *_, (_, verdict, what), _ = found.rows()
    assert verdict == "fails"
    assert " of 9 clients gain; the largest gain is " in what
    assert found.title().endswith(", over 10 rounds, with a misreport for odd rounds and one for even ones")
    line = write_witness(longer, found.gaining("clients")[0], tmp_path)
    assert " in odd rounds of service-1, whose work costs it " in line
    assert "it has 17.705000 of 10 rounds instead of 10.800000" in line
    assert line.endswith("(not written as a scenario: its services offer otherwise in even rounds)")


def test_a_client_that_is_too_dear_for_the_budget_gets_half_of_its_data_sold_as_two() -> None:
    """Worth 5 at a cost of 3.5, beyond the budget of 3; a half is worth 2.5 at a cost of 1.75, and is paid 2.5."""
    market = SampledMarket(0, *(to_micro(np.array(it)) for it in ([[5.0]], [[3.5]], [3.0])), cores=1)
    gain = _as_two(AttackPlan("pay-as-offered", tries=100), market, 0, Dice(0, "test"))
    assert (gain.truthful, gain.misreporting) == (0, 750_000)
    assert gain.found


def test_where_budgets_never_bind_and_each_is_paid_its_worth_nobody_gains_as_two() -> None:
    market = SampledMarket(0, *(to_micro(np.array(it)) for it in ([[4.0, 2.0]], [[1.0, 1.0]], [100.0])), cores=1)
    for client, has in ((0, 3_000_000), (1, 1_000_000)):
        gain = _as_two(AttackPlan("pay-as-offered", tries=100), market, client, Dice(0, "test"))
        assert (gain.truthful, gain.misreporting) == (has, has)
        assert not gain.found


def test_a_client_that_comes_as_two_has_the_values_and_costs_of_one() -> None:
    market = sample(Sizes(), 0, 3)
    one, two = doubled(market, 1)
    for whole, padded, halves in ((market.values, one.values, two.values), (market.costs, one.costs, two.costs)):
        assert (halves[:, 1:3].sum(axis=1) == whole[:, 1]).all()
        assert (padded[:, 1] == whole[:, 1]).all()
        assert (np.delete(padded, 2, axis=1) == whole).all()
        assert (np.delete(halves, [1, 2], axis=1) == np.delete(whole, 1, axis=1)).all()
    assert not one.values[:, 2].any()
    assert (one.costs[:, 2] == MOST_BID).all()
    assert (two.costs % TICK == 0).all()


def test_sybils_are_attacked_when_asked_for_shown_by_a_witness_and_refused_where_size_is_paid(tmp_path: Path) -> None:
    plan = AttackPlan("proportional-share", shape=Sizes(2, 3), markets=2, tries=40, sybils=True)
    certificate = certify(plan)
    assert len(certificate.attacked["sybils"]) == 6
    rows = {name: (verdict, what) for name, verdict, what in certificate.rows()}
    assert rows["truthfulness of clients"][0] == "no gain found"
    gaining = certificate.gaining("sybils")
    assert rows["Sybil-proofness"][0] == "fails"
    assert rows["Sybil-proofness"][1].startswith(f"{len(gaining)} of 6 sybils gain; the largest gain is ")
    line = write_witness(plan, gaining[0], tmp_path)
    assert "each with half of its data" in line
    assert "not written as a scenario" not in line  # the market has played both runs of it
    assert len(list(tmp_path.glob("proportional-share-sybils.toml"))) == 1
    posted = AttackPlan("posted-price", {"price_per_sample": 0.0004}, markets=1, tries=5, sybils=True)
    with pytest.raises(InputError, match=r"^--sybils: posted-price sets prices of its own, and sees 5,000 images "):
        certify(posted)
