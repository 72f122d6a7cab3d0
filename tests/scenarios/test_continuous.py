"""Continuous markets: work outlasts rounds. Played, resumed, verified, forged, and held against markets in slots."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pettingzoo.test import api_test, parallel_api_test
from pettingzoo.utils.conversions import parallel_to_aec

import flmarket
from des.market import Market
from des.money import MICRO
from des.reward import discounts
from fl.training.federation import _Learner
from fl.training.tasks import ClientData
from fl.training.trigger import TRIGGERS
from flmarket.analysis.results.measures import MARKET, MEASURES, SECONDS_TO_TARGET
from flmarket.analysis.results.replayed import contributions
from flmarket.analysis.results.report import make_report
from flmarket.analysis.results.run_results import RunTables, read
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.verification.verify import verify
from flmarket.analysis.what_if.bounds import run_bounds
from flmarket.analysis.what_if.explain import Explanation
from learning.lockstep.market_kinds import LockstepError, curves_of
from learning.play_round import play_round
from scenarios.build import Shelf, build, market_factory
from scenarios.file.problems import ScenarioError
from scenarios.file.schema import Scenario
from scenarios.loader import load
from scenarios.logs.directory import RunDirectory
from scenarios.plugin_files import load_plugin
from scenarios.running.runner import execute
from scenarios.world import World
from support.runs import RESULTS, Row, change, edit, interrupt, planned, played, table

EAGER, BUFFERED, PERIODIC = {"kind": "fedasync"}, {"kind": "fedbuff", "options": {"buffer": 3}}, {"kind": "semi-async"}
FIRST = {"kind": "wait-for-all", "options": {"first": 2}}

GOES_ON = {
    "training.backend": "surrogate", "rounds": 8, "clients.speed": [0.3, 1.0, 3.0], "services.*.budget": 40,
    "timeline.mode": "continuous", "timeline.slot": 1.0, "services.digits.aggregate": BUFFERED,
    "services.strokes.aggregate": EAGER,
}  # fmt: skip


def going_on(**changes: Any) -> Scenario:
    return load("quickstart", {**GOES_ON, **changes})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return played(going_on(), tmp_path_factory.mktemp("continuous"))


def test_work_outlasts_the_round_in_which_it_begins_and_the_run_is_verified(run: RunDirectory) -> None:
    verdict, offers, models = verify(run), table(run.path, "offers"), table(run.path, "models")
    assert (verdict.problems, verdict.unchecked) == ([], [])
    assert any(float(row["end"]) > float(row["round"]) for row in offers if row["end"])
    # a core that comes free in the middle of a round goes to an offer that still stands
    assert any(float(row["start"]) % 1 for row in offers if row["start"])
    assert any(int(row["max_staleness"]) > 0 for row in models)
    waits = next(it.name for it in going_on().services if it.aggregate is None)
    assert all(row["max_staleness"] == "0" and row["at_work"] == "0" for row in models if row["service"] == waits)


def test_each_core_of_a_client_has_one_job_at_a_time_and_who_delivers_is_paid_then(run: RunDirectory) -> None:
    """Held against the tables alone, in a way that neither the market nor verify goes."""
    jobs = [row for row in table(run.path, "offers") if row["core"]]
    for one in jobs:
        same = [it for it in jobs if (it["client"], it["core"]) == (one["client"], one["core"]) and it is not one]
        start, end = float(one["start"]), float(one["end"])
        assert all(float(it["end"]) <= start or float(it["start"]) >= end for it in same)
    paid = [row for row in table(run.path, "events") if row["event"] == "pay"]
    delivered = [(row["end"], row["service"], row["client"], row["paid"]) for row in jobs if row["paid"]]
    assert sorted((row["sim_time"], row["service"], row["client"], row["amount"]) for row in paid) == sorted(delivered)


@pytest.mark.parametrize(
    "changes",
    [
        {"market.mechanism": "uniform-price"},
        {"clients.departure_rate": 0.3, "services.digits.total_budget": 40},
        {"clients.departure_rate": 0.3, "services.*.budget_cap": 90, "services.*.target_accuracy": 0.7},
        {"timeline.deadline": 1.2, "services.strokes.arrival": 3},
        {"timeline.aggregate": PERIODIC, "clients.behaviour.kind": "markup", "services.*.target_accuracy": 0.5},
        {"clients.groups": [{"name": "few", "count": 5, "cores": 1, "services": ["digits"]}]},
        {"timeline.jitter": 0.8, "timeline.download_seconds": 0.2, "clients.speed": [0.123456789, 1.0]},
        {"timeline.slot": 0.25, "services.*.policy": "pacing"},
        {
            "clients.download_mbps": [8, 0.7],
            "clients.upload_mbps": [1.3, 12],
            "timeline.upload_seconds": 0,
            "services.strokes.model_bytes": 1_000_001,
            "clients.departure_rate": 0.2,
            "timeline.jitter": 0.1,
        },
        {"timeline.aggregate": FIRST, "services.strokes.aggregate": {"kind": "wait-for-all", "options": {"first": 4}}},
        {"interventions": [{"round": 3, "key": "clients.cores", "value": 1}], "clients.cores": 3},
        {"timeline.decide": ["free"], "clients.departure_rate": 0.3, "services.digits.total_budget": 90},
        {"timeline.decide": ["model"], "services.strokes.budget_cap": 90, "services.strokes.arrival": 4},
        {"timeline.decide": ["free"], "services.*.patience": 4.5, "services.strokes.arrival": 3, "rounds": 60},
        {
            "timeline.decide": ["free", "model"],
            "interventions": [{"round": 5, "key": "services.digits.budget", "value": 70}],
        },
    ],
)
def test_whatever_else_is_asked_for_a_run_is_verified(changes: dict[str, Any], tmp_path: Path) -> None:
    verdict = verify(played(going_on(**changes), tmp_path))
    assert (verdict.problems, verdict.unchecked) == ([], [])


def test_who_waits_for_the_first_pays_for_updates_that_are_in_no_model(tmp_path: Path) -> None:
    """Trained for real, and resumed with late clients at work: what they send is not kept."""
    scenario = going_on(
        **{"services.digits.aggregate": FIRST, "training.backend": "real", "services.*.policy": "random"}
    )
    plan, shelf = planned(scenario, tmp_path), Shelf()
    interrupt(plan, shelf, 4)
    execute(plan, shelf, workers=0)
    assert verify(plan.directory).problems == []
    models = [row for row in table(plan.directory.path, "models") if row["service"] == "digits"]
    paid = sum(row["service"] == "digits" and bool(row["paid"]) for row in table(plan.directory.path, "offers"))
    assert 0 < sum(int(row["updates"]) for row in models) < paid
    assert {row["max_staleness"] for row in models} == {"0"}
    assert any(int(row["at_work"]) > 0 for row in models)


@pytest.mark.slow
def test_logs_are_verified_in_blocks_of_any_size(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flmarket.analysis.verification.verify.BLOCK", 1)
    assert verify(run).problems == []


@pytest.mark.parametrize(("after", "decide"), [(1, []), (5, []), (5, ["free"])])
def test_a_run_that_was_killed_resumes_to_the_same_bytes(after: int, decide: list[str], tmp_path: Path) -> None:
    scenario, shelf = going_on(**{"timeline.decide": decide}), Shelf()
    run, plan = played(scenario, tmp_path / "whole"), planned(scenario, tmp_path / "killed")
    interrupt(plan, shelf, after)
    execute(plan, shelf, workers=0)
    for name in (*RESULTS, "models.csv"):
        assert (plan.directory.path / name).read_bytes() == (run.path / name).read_bytes()


def test_clients_hold_their_data_for_the_slot_though_events_end_periods_in_it(tmp_path: Path) -> None:
    run = played(going_on(**{"timeline.decide": ["free"], "rounds": 30}), tmp_path)
    ends = {int(row["round"]): float(row["sim_time"]) for row in table(run.path, "rounds")}
    slots = {n: int(ends.get(n - 1, 0.0)) for n in ends}
    assert len(set(slots.values())) < len(slots)
    held: dict[tuple[Any, ...], set[str]] = {}
    for row in table(run.path, "offers"):
        held.setdefault((row["service"], row["client"], slots[int(row["round"])]), set()).add(row["bid"])
    assert all(len(bids) == 1 for bids in held.values())
    logs = Logs.read_whole(run)
    world = World(logs.scenario, logs.seed)  # as screens see it
    for n, now in ((n, logs.world(n)) for n in (2, 9, 30)):
        assert np.array_equal(world.qualities(world.slot_of(n, lambda n=n: round(ends[n - 1] * MICRO))).bid, now.bid)


def test_who_serves_a_service_again_in_a_slot_trains_on_the_same_images(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = {"training.backend": "real", "rounds": 8, "timeline.decide": ["free"], "timeline.slot": 4.0}
    market = build(going_on(**changes, **{"training.local_epochs": 1}), 0, Shelf(), workers=0).market
    drawn: dict[tuple[str, int, int], list[bytes]] = {}
    client_data = _Learner.client_data

    def noted(self: _Learner, *args: Any) -> ClientData:
        data, job = client_data(self, *args), args[2]
        own = drawn.setdefault((job.service, job.client, market.now // (4 * MICRO)), [])
        own.append(data.pixels.tobytes())
        return data

    monkeypatch.setattr(_Learner, "client_data", noted)
    played_on(market, 8, 6)
    market.close()
    again = [images for images in drawn.values() if len(images) > 1]
    assert again
    assert all(len(set(images)) == 1 for images in again)


def test_services_arrive_and_give_up_with_slots_and_clients_are_there_for_them(tmp_path: Path) -> None:
    there = tmp_path / "there.csv"
    there.write_text("client,from,to\n" + "0,1,60\n" + "".join(f"{client},3,3\n" for client in range(1, 16)))
    changes = {"timeline.decide": ["free"], "rounds": 60, "clients.availability": str(there)}
    late = {"services.strokes.arrival": 3, "services.digits.patience": 4.5, "services.digits.target_accuracy": 0.99}
    run = played(going_on(**changes, **late), tmp_path / "runs")
    assert (verify(run).problems, verify(run).unchecked) == ([], [])
    rows = table(run.path, "rounds")
    status = {name: [row["status"] for row in rows if row["service"] == name] for name in ("digits", "strokes")}
    ends = [float(row["sim_time"]) for row in rows if row["service"] == "digits"]
    arrives = status["strokes"].index("training")
    assert ends[arrives - 1] == 2.0 < ends[arrives]
    assert ends[status["digits"].index("gave-up")] == 5.0
    first = {(row["service"], row["budget"]) for row in rows if int(row["round"]) == arrives + 1}
    assert ("strokes", "40.000000") in first
    began = [0.0, *ends]
    offers = [(row["client"], int(began[int(row["round"]) - 1])) for row in table(run.path, "offers")]
    assert {slot for client, slot in offers if client != "0"} == {2}  # the third one
    assert read([run.path])[0].arrivals.tolist() == [1, arrives + 1, 1]


SLOW = {
    "rounds": 30, "clients.count": 24, "clients.speed": [0.05, 0.1, 0.3, 1.0], "timeline.slot": 2.0,
    "services.*.aggregate": PERIODIC, "services.*.target_accuracy": 0.999, "services.*.budget": 30,
    "services.digits.total_budget": 60,
}  # fmt: skip


def test_resolving_spreads_its_budget_knowing_what_is_promised(tmp_path: Path) -> None:
    """What had not been paid yet it once took for refused, and spent all in a fifth of the rounds."""
    run = played(going_on(**SLOW, **{"services.digits.policy": "resolving"}), tmp_path)
    spent = np.cumsum([float(row["spent"]) for row in table(run.path, "rounds") if row["service"] == "digits"])
    assert spent[5] < 0.4 * spent[-1]
    assert spent[-1] > 0.9 * 60


def test_oort_knows_the_losses_of_clients_that_deliver_later() -> None:
    setup = build(going_on(**SLOW, **{"services.digits.policy": "oort"}), 0, Shelf())
    told: set[int] = set()
    while not setup.market.finished:
        report = play_round(setup.market, setup.policies)
        told |= {it.client for it in report.feedback["digits"].completed}
    known = np.flatnonzero(~np.isnan(setup.policies["digits"].state()["losses"]))
    assert told
    assert told <= set(known.tolist())


def test_measures_of_time_know_when_each_round_ended(tmp_path: Path) -> None:
    run = played(
        going_on(**{"timeline.decide": ["free"], "rounds": 30, "services.digits.target_accuracy": 0.5}), tmp_path
    )
    rows = table(run.path, "rounds")
    met = next(row for row in rows if row["status"] == "reached")
    [result] = read([run.path])
    digits = result.place("digits")
    met_at, censored = (SECONDS_TO_TARGET.values(result)[name] for name in ("digits", "strokes"))
    assert (met["service"], met_at) == ("digits", float(met["sim_time"]))
    assert not result.to_target.reached[result.place("strokes")]
    starts, ends = result.periods
    assert result.to_target.reached[digits]
    assert censored == ends[-1] / MICRO == float(rows[-1]["sim_time"])
    assert censored < float(table(run.path, "events")[-1]["sim_time"])  # who is at work then is waited for
    assert np.array_equal(starts[1:], ends[:-1])
    [use] = [measure.values(result)[MARKET] for measure in MEASURES if measure.name == "core use"]
    jobs = [(float(row["start"]), min(float(row["end"]), censored)) for row in table(run.path, "offers") if row["core"]]
    assert use == pytest.approx(100 * sum(end - start for start, end in jobs) / (16 * censored))


def test_without_events_named_rounds_are_slots_and_budgets_lapse(run: RunDirectory) -> None:
    rows = table(run.path, "rounds")
    assert [float(row["sim_time"]) for row in rows[:-3:3]] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    assert {row["budget"] for row in rows} == {"40.000000"}


def played_on(market: Market, rounds: int, bought: int) -> None:
    for _ in range(rounds):
        seen = market.open_round()
        offers = {}
        for name, it in seen.items():
            clients = np.flatnonzero(it.available & (it.own_bids <= it.budget / bought))[:bought]
            offers[name] = flmarket.Offer(clients, it.own_bids[clients])
        market.close_round(offers)


@pytest.mark.slow
def test_real_training_goes_on_from_a_state_with_clients_at_work(tmp_path: Path) -> None:
    """Models that clients are still to send are in the state; 0, 1 and 2 threads give the same."""
    scenario = going_on(**{"training.backend": "real", "rounds": 6})
    found = []
    for workers, stops in ((0, 6), (1, 2), (2, 3)):
        whole = build(scenario, 0, Shelf(), workers=workers)
        played_on(whole.market, min(stops, 6), 4)
        if stops < 6:
            again = build(scenario, 0, Shelf(), workers=workers)
            again.federation.restore(whole.federation.state())
            again.market.restore(whole.market.state())
            whole.market.close()
            whole = again
            played_on(whole.market, 6 - stops, 4)
        found.append({name: it.tobytes() for name, it in whole.federation.state().items()})
        whole.market.close()
    assert found[0] == found[1] == found[2]


@pytest.mark.slow
def test_where_all_wait_for_a_slot_that_is_long_enough_the_models_are_those_of_slots() -> None:
    """Slots are a special case: the same offers, the same models, bit for bit, from real training.

    There is a core for each service: where one is outbid, its offer stands in a continuous market until a core is free.
    """
    found = []
    for mode in ("slots", "continuous"):
        changes = {
            "timeline.mode": mode,
            "training.backend": "real",
            "timeline.slot": 30.0,
            "rounds": 3,
            "clients.cores": 3,
        }
        one = {key: value for key, value in GOES_ON.items() if "aggregate" not in key}
        setup = build(load("quickstart", {**one, **changes}), 0, Shelf(), workers=0)
        reports = []
        while not setup.market.finished:
            seen = setup.market.open_round()
            reports.append(setup.market.close_round({name: setup.policies[name].act(it) for name, it in seen.items()}))
        state = {name: it.tobytes() for name, it in setup.federation.state().items()}
        found.append(([it.offers for it in reports], [it.services for it in reports], state))
        setup.market.close()
    assert found[0] == found[1]


def served_by_who_pays_less(rows: list[Row]) -> None:
    lost = next(row for row in rows if row["outcome"] == "outbid")
    won = next(row for row in rows if (row["round"], row["client"]) == (lost["round"], lost["client"]) and row["core"])
    for key in ("outcome", "core", "start", "end", "paid"):
        lost[key], won[key] = won[key], lost[key]


def later(rows: list[Row]) -> None:
    row = next(row for row in rows if row["start"] and float(row["start"]) % 1)
    row["start"], row["end"] = (f"{float(row[key]) + 0.1:.6f}" for key in ("start", "end"))


def set_first(**values: str) -> Callable[[list[Row]], None]:
    return lambda rows: rows[3].update(values)


@pytest.mark.parametrize(
    ("name", "how", "problem"),
    [
        ("offers", later, "by the work that goes on it should be"),
        ("offers", served_by_who_pays_less, "by the work that goes on it should be"),
        ("models", set_first(mean_staleness="0.5"), "mean_staleness is 0.5, but by the updates that arrive it should"),
        ("models", set_first(updates="9"), "updates is 9, but by the updates that arrive it should"),
        ("models", set_first(at_work="9"), "at_work is 9, but by the updates that arrive it should"),
        ("models", lambda rows: rows.pop(), "models where the updates that arrive make"),
        ("events", lambda rows: rows.pop(-3), "but should be"),
    ],
)
def test_forged_work_is_found(
    name: str, how: Callable[[list[Row]], None], problem: str, run: RunDirectory, tmp_path: Path
) -> None:
    forged = played(going_on(**{"clients.cores": 1, "clients.count": 8}), tmp_path)
    edit(forged.path, name, how)
    assert any(problem in text for text in verify(forged).problems)


def test_a_forged_accuracy_of_the_curves_is_found(tmp_path: Path) -> None:
    forged = played(going_on(), tmp_path)
    change(forged.path, "rounds", {"accuracy": "0.900000"}, lambda row: row["round"] == "4")
    assert any("the accuracy" in text or "accuracy is" in text for text in verify(forged).problems)


def test_who_needs_rounds_that_end_with_their_work_refuses_by_name(run: RunDirectory) -> None:
    said = " ".join(Explanation(Logs.read_whole(run), 2, "digits").sentences())
    assert "this run is cleared by pay-as-offered, as cores come free" in said
    with pytest.raises(LockstepError, match=r"has work that outlasts rounds \(timeline.mode\)"):
        curves_of(market_factory(going_on())(0))
    with pytest.raises(flmarket.InputError, match="work outlasts rounds in this run"):
        contributions(run.path)


def test_results_and_measures_have_the_models(run: RunDirectory) -> None:
    logged = table(run.path, "models")
    results = flmarket.Results([run.path])
    of_a_measure = RunTables(results.runs[0])
    for models in (results.models, of_a_measure.models):
        for column, read_as in (("sim_time", float), ("service", str), ("model", int), ("max_staleness", int)):
            assert models[column].tolist() == [read_as(row[column]) for row in logged]
    assert results.models["policy"].unique().tolist() == [results.runs[0].policy]


def test_results_of_markets_in_slots_have_no_models(tmp_path: Path) -> None:
    slots = played(load("quickstart", {"training.backend": "surrogate", "rounds": 2}), tmp_path)
    with pytest.raises(flmarket.InputError, match="models"):
        _ = flmarket.Results([slots.path]).models


def test_who_leaves_in_a_period_takes_no_work_after_its_start(tmp_path: Path) -> None:
    offers = table(played(going_on(**{"clients.departure_rate": 0.6}), tmp_path).path, "offers")
    lost = {(row["round"], row["client"]) for row in offers if row["outcome"] == "dropped"}
    late = {(row["round"], row["client"]) for row in offers if row["start"] and float(row["start"]) % 1}
    assert lost
    assert late
    assert not lost & late


TRIGGER = """import flmarket


@flmarket.trigger("mine")
class Mine(flmarket.Trigger):
    def due(self, gathered):
        return gathered.arrived >= {least}

    {body}
"""


def test_a_trigger_that_is_another_one_by_now_is_named_and_nothing_is_called_wrong(tmp_path: Path) -> None:
    """Nor are budgets that follow from its models and deliveries."""
    path = tmp_path / "mine.py"
    path.write_text(TRIGGER.format(least=2, body=""))
    load_plugin(path)
    changes = {
        "services.digits.aggregate": {"kind": "mine"}, "clients.departure_rate": 0.5, "services.digits.budget_cap": 90,
        "services.strokes.total_budget": 60,
    }  # fmt: skip
    run = played(going_on(**changes), tmp_path / "runs")
    assert (verify(run).problems, verify(run).unchecked) == ([], [])
    TRIGGERS._registered.clear()
    path.write_text(TRIGGER.format(least=3, body=""))
    load_plugin(path)
    verdict = verify(run)
    assert verdict.problems == []
    assert any("as a trigger or the mechanism is not here, or is another one" in it for it in verdict.unchecked)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("def share(self, staleness): return 50", r"Mine.share\(\).*must return a number from 0 to 1, not 50"),
        ("def recruits(self, gathered): return None", r"'digits' in round 1: must return True or False, not None"),
        ("def due(self, gathered): return 'yes'", r"due\(\).* 'digits' in round \d: must return True or False"),
        ("def due(self, gathered): return gathered.arived", r"due\(\).* of service 'digits' in round \d failed:"),
        ("def share(self, staleness): return float('nan')", r"share\(\).* of service 'digits': must return a number"),
        ("def share(self, staleness): return 1 / 0", r"trigger Mine.share\(\).* failed: ZeroDivisionError"),
        ("def brought_up(self, model, begun, old, staleness): return old[:3]", r"Mine.brought_up\(\).*finite floats"),
    ],
)
def test_a_trigger_that_answers_what_cannot_be_meant_is_blamed(body: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(TRIGGER.format(least=1, body=body))
    load_plugin(path)
    changes = {"services.digits.aggregate": {"kind": "mine"}, "training.backend": "real", "rounds": 3}
    setup = build(going_on(**changes), 0, Shelf(), workers=0)
    with pytest.raises(flmarket.RunError, match=problem):
        played_on(setup.market, 3, 4)


def test_cores_work_for_the_time_of_their_jobs_and_bounds_are_refused(tmp_path: Path) -> None:
    run = played(going_on(**{"services.*.target_accuracy": 1.0}), tmp_path)  # so that nobody leaves
    jobs = [row for row in table(run.path, "offers") if row["core"]]
    seconds = sum(max(0.0, min(float(row["end"]), 8.0) - float(row["start"])) for row in jobs)
    report = make_report(read([run.path]))
    [found] = [row.interval.estimate for row in report.estimates if row.measure.name == "core use"]
    assert found == pytest.approx(100 * seconds / (8.0 * 16))
    with pytest.raises(flmarket.InputError, match="bounds are of rounds by themselves, and here work outlasts them"):
        run_bounds(Logs.read_whole(run))


def test_an_environment_plays_it() -> None:
    env = flmarket.parallel_env(going_on(rounds=3))
    env.reset(seed=0)
    while env.agents:
        *_, infos = env.step({name: env.action_space(name).sample() for name in env.agents})
        assert all(info["discount"] == 0.95 for info in infos.values())


def test_environments_discount_time_where_events_end_rounds() -> None:
    """Two markets of the same events: what all steps are worth is what the same time is worth in whole slots."""
    scenario = going_on(**{"timeline.decide": ["free"], "rounds": 12, "services.*.target_accuracy": 0.999})
    env = flmarket.parallel_env(scenario, gamma=0.9)
    env.reset(seed=0)
    worth, discount = 0.0, 1.0
    while env.agents:
        accuracy = {spec.name: spec.reward_base for spec in env.market.services}
        name, began = env.agents[0], env.market.now
        _, rewards, _, truncated, infos = env.step({name: env.action_space(name).sample() for name in env.agents})
        if not truncated[name]:  # after the last step the market waits for who is at work
            assert infos[name]["discount"] == pytest.approx(0.9 ** ((env.market.now - began) / MICRO))
        whole = rewards[name] / accuracy[name] ** infos[name]["accuracy"]
        assert whole == pytest.approx((1 - infos[name]["discount"]) / (1 - 0.9))
        worth += discount * whole
        discount *= infos[name]["discount"]
    assert worth == pytest.approx((1 - discount) / (1 - 0.9))  # of 1 for each slot


def test_a_run_lasts_as_many_slots_as_are_asked_for_and_verify_sees_that(tmp_path: Path) -> None:
    changes = {"timeline.decide": ["free"], "rounds": 200, "services.*.target_accuracy": 0.999}
    run = played(going_on(**changes, **{"timeline.slots": 4}), tmp_path / "four")
    assert (verify(run).problems, verify(run).unchecked) == ([], [])
    rounds = table(run.path, "rounds")
    assert float(rounds[-4]["sim_time"]) < 4.0 <= float(rounds[-1]["sim_time"])
    for slots, problem in ((5, "the run ends after round"), (3, "the run does not end after round")):
        scenario = run.path / "scenario.toml"
        text = scenario.read_text()
        scenario.write_text(text.replace("slots = 4", f"slots = {slots}"))
        assert any(problem in finding for finding in verify(run).problems)
        scenario.write_text(text)
    [result] = read([run.path])
    assert SECONDS_TO_TARGET.values(result)[MARKET] == 4.0  # nobody met its target: censored there, not at 200 rounds
    assert result.lengths is not None
    assert (result.lengths.sum(), len(result.lengths)) == (pytest.approx(4.0), 200)
    curve, weights = 100 * result["test_accuracy"][: result.played], result.lengths[: result.played]
    [auc] = [measure.values(result)["digits"] for measure in MEASURES if measure.name == "AUC"]
    assert auc == pytest.approx(np.average(curve[:, result.place("digits")], weights=weights))


def test_what_is_left_after_a_target_counts_as_slots() -> None:
    part = [(1 - 0.9**0.5) / 0.1, 0.9**0.5, 0.9**1.5 * (1 - 0.9**0.25) / 0.1]
    assert discounts(0.9, 0.5, 1.25) == pytest.approx(part)
    assert sum(part) == pytest.approx((1 - 0.9**1.75) / 0.1)
    assert discounts(0.9, 1.0, 3) == pytest.approx([1.0, 0.9, 0.81, 0.729])
    assert discounts(0.9, 0.5, 2) == pytest.approx([(1 - 0.9**0.5) / 0.1, 0.9**0.5, 0.9**1.5])
    assert discounts(1.0, 0.25, 2).tolist() == [0.25, 1.0, 1.0]
    assert np.array_equal(discounts(0.95, 1.0, 40), 0.95 ** np.arange(41))  # slots keep their bits


@pytest.mark.filterwarnings("ignore:We recommend agents:UserWarning", "ignore:.*render.*:UserWarning")
@pytest.mark.filterwarnings("ignore:Agent's:UserWarning", "ignore:The class of:UserWarning")
def test_both_kinds_of_environment_of_pettingzoo_play_decisions_at_events() -> None:
    scenario = going_on(**{"timeline.decide": ["free", "model"], "rounds": 20})
    parallel_api_test(flmarket.parallel_env(scenario, flat=True), num_cycles=40)
    api_test(parallel_to_aec(flmarket.parallel_env(scenario, flat=True)), num_cycles=40)


def test_gymnasiums_environment_plays_decisions_at_events() -> None:
    scenario = going_on(**{"timeline.decide": ["free", "model"], "rounds": 20})
    env = flmarket.service_env(scenario, "digits")
    env.reset(seed=0)
    ended, found = False, set()
    while not ended:
        *_, terminated, truncated, info = env.step(env.action_space.sample())
        ended = terminated or truncated
        found.add(info["discount"])
    assert len(found) > 1
    assert all(0.9499 < discount < 1.0 for discount in found)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"timeline.mode": "steady"}, "timeline.mode.*must be 'slots' or 'continuous'"),
        ({"timeline.slot": None}, "timeline.slot: is missing; a continuous market needs the seconds"),
        ({"market.mechanism": "vcg"}, "'vcg' clears all clients of a round together, and in a continuous market"),
        ({"market.mechanism": "iterated"}, "'iterated' .* and in a continuous market cores come free one by one"),
        ({"clients.behaviour.kind": "adaptive"}, "'adaptive' learns from rounds that end with their work"),
        (
            {
                "services.digits.budget_cap": 50,
                "interventions": [{"round": 3, "key": "services.digits.budget", "value": 80}],
            },
            r"interventions.value: must be at most the budget_cap of 50\.0, not 80",
        ),
        ({"services.digits.budget_cap": 5}, r"must be at least the budget of 40\.0, not 5\.0"),
        ({"market.contract_rounds": 2}, "contract_rounds.*must be 1 where work outlasts rounds"),
        ({"market.impressions": "sequential"}, 'impressions.*must be "together" where work outlasts rounds'),
        ({"clients.response.kind": "quadratic"}, "clients.response: cannot be given where work outlasts rounds"),
        ({"timeline.mode": "slots"}, 'aggregate.*says when models are made.*set timeline.mode to "continuous"'),
        ({"timeline.slots": 3}, "timeline.slots.*counts what rounds counts, where no event ends rounds"),
        ({"timeline.slots": 9, "timeline.decide": ["free"]}, "timeline.slots.*must be at most the 8 rounds, not 9"),
        ({"timeline.decide": ["freed"]}, "timeline.decide.*must be 'free' or 'model'"),
        ({"timeline.decide": ["free", "model", "free"]}, 'timeline.decide = .*lists "free" twice'),
        (
            {"timeline.mode": "slots", "timeline.aggregate": {}, "timeline.decide": ["free"]},
            "timeline.decide = .*says when services decide while work goes on",
        ),
        ({"services.digits.aggregate": {"kind": "fedbuf"}}, "unknown trigger 'fedbuf'.*fedbuff"),
        ({"services.digits.aggregate": {"kind": "fedbuff", "options": {"buffer": 0}}}, "buffer must be a whole number"),
    ],
)
def test_wrong_values_are_named(changes: dict[str, Any], problem: str) -> None:
    given = {key: value for key, value in {**GOES_ON, **changes}.items() if value is not None}
    with pytest.raises(ScenarioError, match=problem):
        load("quickstart", given)


RULES = [{"kind": "wait-for-all"}, FIRST, EAGER, BUFFERED, PERIODIC, {"kind": "fedbuff", "options": {"buffer": 1}}]


@pytest.mark.hypothesis
@given(
    changes=st.fixed_dictionaries(
        {
            "rounds": st.integers(1, 7),
            "clients.count": st.integers(3, 14),
            "clients.cores": st.integers(1, 3),
            "clients.departure_rate": st.sampled_from([0.0, 0.2, 0.9]),
            "timeline.slot": st.sampled_from([0.3, 1.0, 2.5]),
            "timeline.upload_seconds": st.sampled_from([0.0, 0.5]),
            "timeline.seconds_per_sample": st.sampled_from([0.0, 0.003, 0.05]),
            "market.mechanism": st.sampled_from(["pay-as-offered", "uniform-price"]),
            "timeline.aggregate": st.sampled_from(RULES),
            "services.digits.aggregate": st.sampled_from(RULES),
            "services.*.target_accuracy": st.sampled_from([0.2, 0.99]),
            "services.digits.budget": st.integers(0, 40),
        }
    ),
    optional=st.fixed_dictionaries(
        {},
        optional={
            "timeline.decide": st.sampled_from([["free"], ["model"], ["free", "model"]]),
            "timeline.deadline": st.sampled_from([0.4, 2.0]),
            "services.digits.total_budget": st.integers(0, 60),
            "services.strokes.budget_cap": st.just(100),
        },
    ),
    seed=st.integers(0, 99),
)
def test_drawn_markets_conserve_money_and_go_on_from_any_round(
    changes: dict[str, Any], optional: dict[str, Any], seed: int
) -> None:
    scenario = going_on(**changes, **optional)

    def reports(stop: int | None) -> list[Any]:
        setup = build(scenario, seed, Shelf())
        found = []
        while not setup.market.finished:
            seen = setup.market.open_round()
            found.append(setup.market.close_round({name: setup.policies[name].act(it) for name, it in seen.items()}))
            if setup.market.round == stop and not setup.market.finished:
                again = build(scenario, seed, Shelf())
                again.federation.restore(setup.federation.state())
                again.market.restore(setup.market.state())
                again.policies.update(setup.policies)
                setup = again
        accounts = setup.market.ledger.accounts.values()
        assert all(it.free == it.held == it.committed == 0 for it in accounts)
        assert sum(it.paid for it in accounts) == sum(offer.paid or 0 for report in found for offer in report.offers)
        return [(it.services, it.offers, it.events, it.models, it.end) for it in found]

    whole = reports(None)
    assert reports(1 + seed % len(whole)) == whole


@pytest.mark.slow
def test_staleness_and_work_follow_littles_law(tmp_path: Path) -> None:
    """In the long run, clients at work are deliveries a second times their duration, and staleness is models times it.

    The laws hold whatever the distribution of durations, but for what is cut off at both ends of the run.
    """
    changes = {"rounds": 400, "timeline.jitter": 1.0, "services.*.target_accuracy": 1.0, "services.*.policy": "random"}
    logs = played(going_on(**changes), tmp_path).path
    seconds = float(table(logs, "rounds")[-1]["sim_time"])
    for service in ("digits", "strokes"):
        jobs = [row for row in table(logs, "offers") if row["service"] == service and row["paid"]]
        models = [row for row in table(logs, "models") if row["service"] == service]
        time = np.mean([float(row["end"]) - float(row["start"]) for row in jobs])
        updates = np.array([int(row["updates"]) for row in models])
        staleness = np.average([float(row["mean_staleness"]) for row in models], weights=updates)
        assert staleness == pytest.approx(len(models) / seconds * time, rel=0.1)
        # seen by a service after each of its models: that many, less those of the buffer that has just been emptied
        at_work = np.average([int(row["at_work"]) for row in models])
        assert at_work == pytest.approx(len(jobs) / seconds * time, rel=0.25)
