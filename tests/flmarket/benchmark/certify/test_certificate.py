"""A certificate counts what was attacked and what was found; equal plans give equal certificates."""

import pytest

from des.allocation import allocate
from des.mechanisms.mechanism import MECHANISMS, Clearing, ClearingError, Mechanism
from flmarket.benchmark.certify.certificate import Plan, certify
from flmarket.benchmark.certify.sampling import Shape


def test_equal_plans_find_the_same() -> None:
    plan = Plan("uniform-price", shape=Shape(2, 2), markets=3, tries=20)
    first, again = certify(plan), certify(plan)
    assert first == again
    assert certify(Plan("uniform-price", shape=Shape(2, 2), markets=3, tries=20, seed=1)).attacked != first.attacked


def test_every_party_of_every_market_is_attacked() -> None:
    certificate = certify(Plan("pay-as-offered", shape=Shape(2, 3), markets=2, tries=5))
    assert [len(gains) for gains in certificate.attacked.values()] == [4, 6]
    assert certificate.clearings >= 10 * 5


def test_what_it_says() -> None:
    certificate = certify(Plan("uniform-price", shape=Shape(2, 2, 1), markets=3, tries=40))
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


def test_where_nothing_is_found_it_says_how_many_were_attacked() -> None:
    plan = Plan("posted-price", {"price_per_sample": 0.0004}, Shape(2, 2, budgets=False), markets=2, tries=10)
    assert list(certify(plan).rows())[3:] == [
        ("truthfulness of services", "no gain found", "4 services attacked"),
        ("truthfulness of clients", "no gain found", "4 clients attacked"),
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
        certify(Plan("generous", markets=1))
