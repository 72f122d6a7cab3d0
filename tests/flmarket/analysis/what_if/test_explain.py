"""`flmarket explain`: what became of a service's offers, and what it could have had, against trying everything."""

import re
from itertools import combinations
from math import nan
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from des.log_records import Outcome
from des.mechanism import Book, clearing_of
from des.mechanisms.pay_as_offered import PayAsOffered
from des.money import MICRO
from fl.data.dqi import JIAO, dqi
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.what_if import union_bound
from flmarket.analysis.what_if.explain import Explanation
from flmarket.analysis.what_if.reasons import cash, not_served
from flmarket.core.errors import InputError
from scenarios.loader import load, parse
from support.runs import played
from support.scenarios import three_services

SCENARIO = """
name = "small"
rounds = 6
clients = { count = 7, cores = 1, data_size = [40, 80], emd = [0.2, 0.8], cost = { per_sample = 0.05, per_emd = 1.0 } }
training = { backend = "surrogate" }
""" + three_services("hqfa", "hqfa", "random")


def logs_of(out: Path, *changes: str) -> Logs:
    return Logs.read(played(parse(SCENARIO, overrides=list(changes)), out))


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Logs:
    return logs_of(tmp_path_factory.mktemp("runs"))


@pytest.mark.parametrize("number", range(1, 7))
@pytest.mark.parametrize("service", ["alpha", "beta", "gamma"])
def test_the_best_set_is_that_of_trying_all_sets(number: int, service: str, logs: Logs) -> None:
    found = Explanation(logs, number, service).possible()
    dqi = logs.population.draw(number).dqi[logs.places[service]]
    budget = logs.conditions(number).budgets[service]
    affordable = [
        subset
        for size in range(8)
        for subset in combinations(range(7), size)
        if int(found.prices[list(subset)].sum()) <= budget
    ]
    assert found.quality == pytest.approx(max(sum(dqi[list(subset)]) for subset in affordable))


@pytest.mark.parametrize("number", range(1, 7))
def test_the_best_set_would_have_been_served(number: int, logs: Logs) -> None:
    """The round is cleared again, with the offers of the best set in the place of alpha's."""
    best = Explanation(logs, number, "alpha").possible()
    offers = logs.offers_of(number)
    rivals = offers[offers["service"] != "alpha"]
    services = np.array([0] * len(best.clients) + [logs.places[name] for name in rivals["service"]])
    clients = np.array([*best.clients, *rivals["client"]])
    payments = np.array([*best.prices[best.clients], *rivals["payment"]])
    bids = logs.population.draw(number).bid[services, clients]
    budgets = np.full(3, 10**9)
    book = Book(services, clients, payments, bids, bids, budgets, 1, lambda c: np.zeros((*np.shape(c), 3)))
    assert (clearing_of(PayAsOffered(), book, number).core[: len(best.clients)] >= 0).all()


def test_more_of_anything_is_never_worse(logs: Logs) -> None:
    found = Explanation(logs, 2, "alpha")
    best = found.possible().quality
    assert found.possible(budget=1_000_000).quality >= best
    assert found.possible(cores=1).quality >= best
    assert found.possible(without="beta").quality >= best


def test_every_refused_offer_names_who_won(logs: Logs) -> None:
    lost = logs.offers[logs.offers["outcome"] == Outcome.OUTBID]
    assert not lost.empty
    for row in lost.itertuples():
        words = Explanation(logs, row.round, row.service).why(row)
        same = logs.offers[(logs.offers["round"] == row.round) & (logs.offers["client"] == row.client)]
        [winner] = same[same["core"].notna()].itertuples()
        if winner.payment == row.payment:
            assert words == f"lost the draw against {winner.service}, which pays {cash(winner.payment)} too"
        else:
            less, more = row.payment, winner.payment
            assert words == f"outbid by {winner.service}: {cash(less, more)} < {cash(more, less)}"


def test_a_draw_is_lost_against_the_last_that_won_a_core(tmp_path: Path) -> None:
    """As the order book and the rivalry of the screens have it, whatever the order of offers.csv."""
    changes = "rounds=20", "clients.cores=2", *(f"services.{name}.policy=hqfa" for name in ("alpha", "beta", "gamma"))
    logs = logs_of(tmp_path, *changes)
    lost = logs.offers[logs.offers["outcome"] == Outcome.OUTBID]
    seen = set()
    for row in lost.itertuples():
        same = logs.offers[(logs.offers["round"] == row.round) & (logs.offers["client"] == row.client)]
        first, last = same[same["core"].notna()].sort_values("core").itertuples()
        if first.payment == last.payment == row.payment:
            seen.add(last.Index > first.Index)
            words = Explanation(logs, row.round, row.service).why(row)
            assert words.startswith(f"lost the draw against {last.service}, ")
    assert seen == {True, False}


def test_the_words_of_a_round(logs: Logs) -> None:
    row = next(logs.offers[logs.offers["outcome"] == Outcome.OUTBID].itertuples())
    sentences = list(Explanation(logs, row.round, row.service).sentences())
    own = logs.offers_of(row.round, row.service)
    clients = own["client"][own["outcome"] == Outcome.SERVED].tolist()
    served = f"was served by {len(clients)} of them ({', '.join(map(str, clients))}), paid "
    assert clients
    assert sentences[0].startswith(f"Round {row.round}, {row.service}: wanted {len(own)} clients, {served}")
    assert f"Client {row.client}: {Explanation(logs, row.round, row.service).why(row)}." in sentences
    assert any(sentence.startswith("The best in DQI within its budget, ") for sentence in sentences)
    assert any(sentence.startswith("One more unit of budget: DQI ") for sentence in sentences)
    found = Explanation(logs, row.round, row.service)
    twice = found.possible(budget=logs.conditions(row.round).budgets[row.service]).quality
    more = f"({twice - found.possible().quality:+.4f})"
    assert f"Twice the budget: DQI {twice:.4f} at best {more}." in sentences


def test_who_values_clients_as_a_set_is_told_what_sets_are_worth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other services are told sums, as ever."""
    changes = "services.alpha.policy=greedy", "services.alpha.policy_options.together=union", "market.data=public"
    logs = logs_of(tmp_path, "dqi=jiao", *changes)
    found, world = Explanation(logs, 2, "alpha"), logs.world(2)
    best, size, emd = found.possible(), world.data_size[0], world.emd[0]

    def worth_of(clients: list[int]) -> float:
        images = int(size[clients].sum())
        return float(dqi(images, float((size[clients] * emd[clients]).sum()) / images, JIAO)) if images else 0.0

    affordable = [
        worth_of([*subset])
        for count in range(8)
        for subset in combinations(range(7), count)
        if int(best.prices[list(subset)].sum()) <= logs.conditions(2).budgets["alpha"]
    ]
    assert best.quality == pytest.approx(max(affordable), abs=1e-9)
    own = logs.offers_of(2, "alpha")
    served = own["client"][own["outcome"] == Outcome.SERVED].tolist()
    sentences = list(found.sentences())
    assert sentences[0].endswith(f"; the DQI of all their images is {worth_of(served):.4f}.")
    assert any(f"union DQI {best.quality:.4f} (" in sentence for sentence in sentences)
    assert "the sum of their DQI is" in next(iter(Explanation(logs, 2, "beta").sentences()))
    monkeypatch.setattr(union_bound, "MOST_SETS", 3)
    assert [*found.sentences()][-1].startswith("What could have been had is not worked out: there are more than 3 ")


def test_the_table_has_all_clients(logs: Logs) -> None:
    rows = Explanation(logs, 1, "alpha").table()
    assert rows["client"].tolist() == list(range(7))
    wanted = logs.offers_of(1, "alpha").set_index("client")["outcome"]
    assert rows.dropna(subset="outcome").set_index("client")["outcome"].to_dict() == wanted.to_dict()
    assert rows["in_best_set"].sum() == len(Explanation(logs, 1, "alpha").possible().clients)


def test_an_offline_client_could_not_have_been_had(tmp_path: Path) -> None:
    logs = logs_of(tmp_path, 'interventions=[{ round = 2, key = "clients.offline", value = [0, 1, 2] }]')
    assert not {0, 1, 2} & set(Explanation(logs, 3, "alpha").possible().clients.tolist())


def test_under_a_second_price_the_reason_says_what_the_winner_pays() -> None:
    offer, first, second = (
        SimpleNamespace(outcome=outcome, payment=payment, paid=paid, service="alpha")
        for outcome, payment, paid in (
            ("outbid", 2_500_000, nan),
            ("served", 2_800_000, 2_500_000),
            ("served", 2_500_000, 2_500_000),
        )
    )
    rule = "uniform-price, client after client"
    assert not_served(offer, [first], rule) == "outbid by alpha, which pays 2.50: 2.50 < 2.80"
    assert not_served(offer, [second], rule) == "lost the draw against alpha, which pays 2.50 too"
    assert not_served(offer, [first], "mine") == "refused by the mechanism mine"


def test_under_another_mechanism_only_what_happened_is_told(tmp_path: Path) -> None:
    logs = logs_of(tmp_path, "market.mechanism=uniform-price")
    last = list(Explanation(logs, 1, "alpha").sentences())[-1]
    assert (
        last == "What could have been had is worked out for pay-as-offered only; this run is cleared by uniform-price."
    )


@pytest.mark.parametrize(
    ("number", "service", "problem"),
    [
        (7, "alpha", "unknown round 7; the run has rounds 1 to 6"),
        (0, "alpha", "unknown round 0; the run has rounds 1 to 6"),
        (1, "alpa", "unknown service 'alpa'; did you mean 'alpha'?"),
    ],
)
def test_what_there_is_not(number: int, service: str, problem: str, logs: Logs) -> None:
    with pytest.raises(InputError) as caught:
        Explanation(logs, number, service)
    assert str(caught.value) == problem


def test_a_service_that_has_left_is_said_to_have_left(tmp_path: Path) -> None:
    logs = logs_of(tmp_path, "services.alpha.target_accuracy=0.2")
    with pytest.raises(InputError, match="service 'alpha' had left before round 6"):
        Explanation(logs, 6, "alpha")


STANDING = {
    "training.backend": "surrogate", "rounds": 5, "services.*.aggregate": {"kind": "semi-async"},
    "timeline.jitter": 1.0, "services.*.budget": 25,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param(
            {"clients.cores": 2, "clients.cost.per_sample": 0.0, "clients.cost.per_emd": 0.0},
            {"draw", "at work"},
            marks=pytest.mark.slow,
        ),
        ({"clients.departure_rate": 0.6}, {"outbid", "at work", "leaves"}),
        pytest.param({"market.mechanism": "uniform-price"}, {"by rule", "at work"}, marks=pytest.mark.slow),
    ],
)
def test_where_cores_come_free_one_by_one_the_reason_says_who_had_them_and_when(
    changes: dict[str, Any], said: set[str], tmp_path: Path
) -> None:
    """Each reason is held against the rows of offers.csv alone."""
    logs = Logs.read(played(load("stragglers", {**STANDING, **changes}), tmp_path))
    cores = logs.scenario.clients.cores
    jobs = logs.offers[logs.offers["core"].notna()]
    found = set()
    for number in logs.numbers:
        begin, end = (number - 1) * 2.0, number * 2.0
        for row in logs.offers_of(number).itertuples():
            if row.outcome != Outcome.OUTBID:
                continue
            own = jobs[jobs["client"] == row.client]
            meanwhile = own[(own["start"] < end * MICRO) & (own["end"] > begin * MICRO)]
            won = own[own["round"] == number]
            reason = Explanation(logs, number, row.service).why(row)
            for part in reason.split(", and ") if len(won) else [reason]:
                if match := re.fullmatch(r"outbid at (\S+) s by (\S+): (\S+) < (\S+)", part):
                    [other] = won[won["service"] == match[2]].itertuples()
                    assert other.payment > row.payment
                    found.add("outbid")
                elif match := re.fullmatch(r"lost the draw at (\S+) s against (\S+), which pays \S+ too", part):
                    [other] = won[won["service"] == match[2]].itertuples()
                    assert other.payment == row.payment
                    found.add("draw")
                elif match := re.fullmatch(r"at (\S+) s the mechanism uniform-price gave the core to (\S+)", part):
                    [other] = won[won["service"] == match[2]].itertuples()
                    found.add("by rule")
                else:
                    assert not len(won)
                    all_along = meanwhile[(meanwhile["start"] <= begin * MICRO) & (meanwhile["end"] >= end * MICRO)]
                    expired = f"the offer expired at {end:.2f} s"
                    if match := re.fullmatch(rf"its core was at work for (\S+) until (\S+) s, and {expired}", part):
                        first = all_along.loc[all_along["end"].idxmin()]
                        assert (match[1], match[2]) == (first["service"], f"{first['end'] / MICRO:.2f}")
                        assert len(all_along) == cores
                        found.add("at work")
                    else:
                        assert re.fullmatch(f"{expired}, and the client took no (more )?work before that", part)
                        assert len(all_along) < cores
                        assert logs.population.departs(number, row.client) is not None
                        found.add("leaves")
                    continue
                assert match[1] == f"{other.start / MICRO:.2f}"
    assert said <= found


def test_a_client_that_was_at_work_for_the_service_could_not_be_had(tmp_path: Path) -> None:
    logs = Logs.read(played(load("stragglers", STANDING), tmp_path))
    first = logs.offers[logs.offers["end"] > 4 * MICRO].iloc[0]
    table = Explanation(logs, 2, first["service"]).table().set_index("client")
    times = f"from {first['start'] / MICRO:.2f} s to {first['end'] / MICRO:.2f} s"
    assert first["round"] == 1
    assert table.loc[first["client"], "why"] == f"at work for it {times}"


def test_no_client_that_stays_is_said_to_have_taken_no_work_where_events_end_rounds(tmp_path: Path) -> None:
    """Not in the last round, either, whose end in rounds.csv waits for who is at work."""
    changes = {"rounds": 10, "services.*.budget": 40, "timeline.decide": ["free"], "training.backend": "surrogate"}
    logs = Logs.read(played(load("stragglers", changes), tmp_path))
    lost = logs.offers[logs.offers["outcome"] == Outcome.OUTBID]
    assert 10 in set(lost["round"])
    for (number, service), rows in lost.groupby(["round", "service"]):
        explanation = Explanation(logs, number, service)
        assert not [why for row in rows.itertuples() if "no more work" in (why := explanation.why(row))]
