"""Services that arrive in streams and leave when their patience ends: expanded, drawn, played, resumed and verified."""

import json
import shutil
from collections.abc import Mapping
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from des.observation import Status
from flmarket.analysis.results.measures import SECONDS_TO_TARGET
from flmarket.analysis.results.report import make_report
from flmarket.analysis.results.report_tables import introduction
from flmarket.analysis.results.run_results import read
from flmarket.analysis.verification.verify import verify
from flmarket.cli.batches import results_table
from flmarket.core.errors import InputError
from learning.evaluation import evaluate, everywhere
from learning.lockstep.market_kinds import LockstepError, curves_of
from learning.statistics.measure import ALL_MEASURES
from scenarios.build import Shelf, build, eligibility, market_factory
from scenarios.file.problems import ScenarioError
from scenarios.file.schema import Scenario
from scenarios.file.toml import value_text
from scenarios.loader import dumps, parse, points, with_policy
from scenarios.logs.directory import RunDirectory
from scenarios.running.runner import execute
from scenarios.stays import stays
from support.runs import RESULTS, change, interrupt, planned, played, table
from tui.state.compared_runs import result_at
from tui.state.feeds import DirectoryFeed
from tui.state.moment import Moment
from tui.state.run_standing import standing
from tui.state.watched_run import Session

JOBS = {
    "name": "jobs", "count": 4, "rate": 0.5, "dataset": "mnist", "budget": 3.0, "target_accuracy": 0.6,
    "reward_base": 64.0, "policy": "random",
}  # fmt: skip

MARKET = """
name = "streaming"
rounds = 25
dqi = "published"
clients = { count = 5, cores = 1, data_size = [100], emd = [0.2], cost = { per_sample = 0.01, per_emd = 0.0 } }
training.backend = "surrogate"
timeline = { mode = "continuous", slot = 1.0, aggregate = { kind = "fedbuff", options = { buffer = 3 } } }
"""


def stream(**changes: Any) -> dict[str, Any]:
    return {key: value for key, value in {**JOBS, **changes}.items() if value is not None}


def tables(kind: str, *found: Mapping[str, Any]) -> str:
    return "".join(
        f"[[{kind}]]\n" + "".join(f"{key} = {value_text(value)}\n" for key, value in table.items()) for table in found
    )


def market(*streams: Mapping[str, Any], **changes: Any) -> Scenario:
    return parse(MARKET + tables("streams", *(streams or [stream()])), overrides=changes)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return played(market(stream(patience=6.5)), tmp_path_factory.mktemp("streams"), seed=3)


def test_a_stream_stands_for_services_that_differ_in_their_names_alone() -> None:
    scenario = market(stream(budget_cap=9.0))
    assert [service.name for service in scenario.services] == ["jobs-1", "jobs-2", "jobs-3", "jobs-4"]
    assert {service.model_copy(update={"name": "one"}).model_dump_json() for service in scenario.services} == {
        scenario.services[0].model_copy(update={"name": "one"}).model_dump_json()
    }
    assert parse(dumps(scenario)) == scenario  # which has the stream, not its services
    assert "jobs-1" not in dumps(scenario)


def test_those_of_the_file_come_first_and_all_can_be_named_together() -> None:
    alone = {key: value for key, value in stream(name="alone").items() if key not in ("count", "rate")}
    text = MARKET + tables("streams", stream()) + tables("services", alone)
    scenario = parse(text, overrides={"services.*.budget": 8.0})
    assert [service.name for service in scenario.services][:2] == ["alone", "jobs-1"]
    assert {service.budget for service in scenario.services} == {8.0}
    assert {service.policy for service in with_policy(scenario, "hqfa").services} == {"hqfa"}


def test_a_stream_can_be_overridden_and_swept() -> None:
    swept = market(sweep={"streams.jobs.rate": [0.1, 0.2]})
    assert [point.scenario.streams[0].rate for point in points(swept)] == [0.1, 0.2]
    assert market(**{"streams.jobs.count": 2}).services[-1].name == "jobs-2"


def test_a_service_takes_part_from_the_first_round_on_that_begins_after_its_arrival() -> None:
    times = [0.0, 0.000001, 1.0, 1.5]
    scenario = market(stream(rate=None, times=times), stream(name="late", count=1, rate=None, times=[0.5], arrival=4))
    found = stays(scenario, 0)
    assert [stay.first for stay in found] == [1, 2, 2, 3, 5]
    assert [stay.came for stay in found] == [0, 1, 1_000_000, 1_500_000, 3_500_000]


def test_patience_counts_from_the_instant_of_arrival_and_ends_with_a_round() -> None:
    scenario = market(stream(rate=None, times=[0.0, 0.5, 0.5, 2.0], patience=2.0))
    assert [(stay.first, stay.last) for stay in stays(scenario, 0)] == [(1, 2), (2, 3), (2, 3), (3, 4)]
    brief = market(stream(rate=None, times=[0.000001, 0.5, 0.999999, 1.0], patience=1.0))  # the shortest
    assert [(stay.first, stay.last) for stay in stays(brief, 0)] == [(2, 2)] * 4


def test_the_slowest_stream_arrives_one_by_one_after_the_run_and_is_verified(tmp_path: Path) -> None:
    found = [stay.came for stay in stays(market(stream(count=1_000, rate=1e-8)), 0)]
    assert found == sorted(set(found))
    assert found[-1] < np.iinfo(np.int64).max
    run = played(market(stream(count=1_000, rate=1e-8), **{"clients.count": 1, "rounds": 2}), tmp_path)
    assert verify(run).problems == []
    assert {row["status"] for row in table(run.path, "rounds")} == {Status.WAITING}


def test_arrivals_are_a_poisson_process_that_follows_from_the_seed_and_the_stream_alone() -> None:
    scenario = market(stream(count=500, rate=2.0), stream(name="others", count=500, rate=2.0))
    came = np.array([[stay.came for stay in stays(scenario, seed)] for seed in (1, 2, 3, 4)]).reshape(8, 500) / 1e6
    between = np.diff(came, axis=1)
    assert abs(between.mean() - 0.5) < 4 * 0.5 / np.sqrt(between.size)
    assert abs(np.mean(between > 1.0) - np.exp(-2.0)) < 4 * np.sqrt(0.135 * 0.865 / between.size)
    among = np.corrcoef(between)[~np.eye(8, dtype=np.bool_)]
    assert np.abs(among).max() < 4 / np.sqrt(500)
    alone = market(stream(count=500, rate=2.0))
    assert [stay.came for stay in stays(alone, 1)] == [stay.came for stay in stays(scenario, 1)][:500]


def test_who_has_not_met_its_target_when_its_patience_ends_gives_up_and_its_run_is_verified(run: RunDirectory) -> None:
    verdict = verify(run)
    assert (verdict.problems, verdict.unchecked) == ([], [])
    scenario, rounds = market(stream(patience=6.5)), table(run.path, "rounds")
    for service, stay in zip(scenario.services, stays(scenario, 3), strict=True):
        status = [row["status"] for row in rounds if row["service"] == service.name]
        assert status[: stay.first - 1] == [Status.WAITING] * (stay.first - 1) == status[: ceil(stay.came / 1e6)]
        leaves = next(n for n, it in enumerate(status, start=1) if Status(it).leaves)
        assert status[leaves - 1] == Status.REACHED or leaves * 1e6 >= stay.came + 6.5e6 > (leaves - 1) * 1e6
    found = {row["status"] for row in rounds}
    assert {Status.GAVE_UP, Status.REACHED, Status.LEFT} <= found
    left = [row for row in table(run.path, "events") if row["event"] == "exit"]
    assert len(left) == len(scenario.services)


def test_a_run_that_was_killed_resumes_to_the_same_bytes(run: RunDirectory, tmp_path: Path) -> None:
    plan, shelf = planned(market(stream(patience=6.5)), tmp_path, seed=3), Shelf()
    interrupt(plan, shelf, 4)
    execute(plan, shelf, workers=0)
    for name in (*RESULTS, "models.csv"):
        assert (plan.directory.path / name).read_bytes() == (run.path / name).read_bytes()


@pytest.mark.parametrize(("was", "forged"), [(Status.GAVE_UP, Status.REACHED), (Status.WAITING, Status.TRAINING)])
def test_a_status_that_does_not_follow_from_arrival_and_patience_is_found(
    run: RunDirectory, was: Status, forged: Status, tmp_path: Path
) -> None:
    copy = RunDirectory(Path(shutil.copytree(run.path, tmp_path / run.path.parent.parent.name / "run" / "seed-0003")))
    change(copy.path, "rounds", {"status": forged}, lambda row: row["status"] == was)
    assert any("by its arrival, accuracy, target and patience" in it for it in verify(copy).problems)


def test_rounds_and_seconds_to_target_are_counted_from_each_runs_own_arrivals(run: RunDirectory) -> None:
    [result] = read([run.path])
    found = stays(market(stream(patience=6.5)), 3)
    assert result.arrivals.tolist() == [stay.first for stay in found]
    status = np.array([row["status"] for row in table(run.path, "rounds")]).reshape(-1, 4)
    assert result.played == len(status) < 25
    left = [next(n for n, it in enumerate(own, start=1) if Status(it).leaves) for own in status.T]
    # who gave up is known to take longer than until then, and no more
    assert result.to_target.rounds.tolist() == [n - stay.first + 1 for n, stay in zip(left, found, strict=True)]
    seconds = SECONDS_TO_TARGET.values(result)
    for m, stay in enumerate(found):
        assert seconds[f"jobs-{m + 1}"] == pytest.approx(left[m] - stay.came / 1e6)
    assert result.to_target.reached.tolist() == [
        own[n - 1] == Status.REACHED for own, n in zip(status.T, left, strict=True)
    ]


def test_services_wait_from_their_arrival_until_a_client_works_for_them(run: RunDirectory, tmp_path: Path) -> None:
    def measured(path: Path, name: str) -> dict[str, float]:
        return ALL_MEASURES.load(name).values(read([path])[0])

    found = stays(market(), 3)
    first: dict[str, float] = {}
    for row in table(run.path, "offers"):
        if row["start"]:
            first[row["service"]] = min(first.get(row["service"], np.inf), float(row["start"]))
    waited = measured(run.path, "waiting")
    for m, stay in enumerate(found):
        assert waited[f"jobs-{m + 1}"] == pytest.approx(first[f"jobs-{m + 1}"] - stay.came / 1e6)
    assert waited["market"] == pytest.approx(np.mean([waited[f"jobs-{m}"] for m in range(1, 5)]))
    assert set(measured(run.path, "never served").values()) == {0.0}
    poor = stream(rate=None, times=[0.5, 2.0, 2.0, 40.0], budget=0.0, patience=3.0)
    nobody = played(market(poor), tmp_path).path
    assert set(measured(nobody, "never served").values()) == {100.0}
    # two give up with the rounds that end at 4 and 5 seconds; the last one never comes
    assert measured(nobody, "waiting") == {"jobs-1": 3.5, "jobs-2": 3.0, "jobs-3": 3.0, "market": 9.5 / 3}


def test_streams_come_to_markets_in_slots_of_a_known_length_too(tmp_path: Path) -> None:
    slots = market(stream(patience=4.0), timeline={"slot": 2.0, "deadline": 1.0}, rounds=12)
    verdict = verify(played(slots, tmp_path))
    assert (verdict.problems, verdict.unchecked) == ([], [])
    with pytest.raises(LockstepError, match="give up"):
        curves_of(market_factory(slots)(0))


def test_a_service_that_never_came_is_in_no_mean_and_named_as_such(tmp_path: Path) -> None:
    early = stream(rate=None, times=[0.0, 0.5, 2.0, 90.0])
    run = played(market(early, rounds=12), tmp_path)
    [result] = read([run.path])
    assert result.came.tolist() == [True, True, True, False]
    curves = {"final accuracy": 100 * result["test_accuracy"][-1, :3], "rounds to target": result.to_target.rounds[:3]}
    for name, own in curves.items():
        values = ALL_MEASURES.load(name).values(result)
        assert values == {**dict(zip(result.setting.services, own, strict=False)), "market": pytest.approx(own.mean())}
    shown = standing(run.path).accuracy  # in the screen's list of runs
    assert shown == pytest.approx(curves["final accuracy"].mean(), abs=1e-4)
    report = make_report([result])
    assert any(text.startswith("1 service of 1 run never took part") for text in introduction(report))
    [met] = [it.to_target for it in report.estimates if (it.service, it.measure.name) == ("market", "rounds to target")]
    assert met is not None
    assert len(met.rounds) == 3
    rows = results_table(report, {result.setting.folder / result.policy: "run"}).rows
    assert [row[0].strip() for row in rows if not any(row[1:])] == ["run, 1 seed", "jobs-4, never took part"]


def test_where_no_service_came_all_are_in_the_means(tmp_path: Path) -> None:
    run = played(market(stream(rate=None, times=[90.0] * 4), rounds=3), tmp_path)
    report = make_report(read([run.path]))
    assert {row.service for row in report.estimates} == {"market"}
    names = [row[0] for row in results_table(report, {run.path.parent: "run"}).rows]
    assert len(names) == 5
    assert all("never took part" in name for name in names[1:])


def test_what_an_evaluation_cannot_compare_is_refused() -> None:
    slots = market(timeline={"slot": 2.0}, rounds=4)
    with pytest.raises(InputError, match="same rounds under all seeds"):
        evaluate(market_factory(slots), {"random": everywhere("random")}, [1, 2])


@pytest.mark.parametrize(
    ("streams", "changes", "message"),
    [
        ([stream(rate=None)], {}, "streams.jobs.rate: is missing; give it or times"),
        ([stream(times=[0.0])], {}, "streams.jobs.rate: has times beside it; remove one of them"),
        ([stream(rate=1e-13)], {}, "streams.jobs.rate: must be greater than or equal to 0.00000001, not 1e-13"),
        ([stream(patience=0.5)], {}, r"streams.jobs.patience: must be at least a slot of 1\.0 seconds, not 0\.5"),
        ([stream(patience=0.5)], {"timeline": {"slot": 2.0}}, "streams.jobs.patience: must be at least a slot of 2"),
        ([stream(rate=None, times=[1.0])], {}, "streams.jobs.times: has 1 numbers for 4 services"),
        ([stream(rate=None, times=[1.0, 0.5, 2.0, 3.0])], {}, "streams.jobs.times: must not fall"),
        ([stream(name="j" * 63)], {}, "streams.*name: is too long"),
        ([stream(), stream()], {}, "streams.jobs.name: is also the name of another service"),
        ([stream(count=600), stream(name="b", count=600)], {"clients.count": 2}, "make 1,200 services"),
        ([stream()], {"timeline": {}}, "counts seconds"),
        ([stream(policy="nobody")], {}, "streams.jobs.policy: unknown policy"),
        ([stream(budget_cap=1.0)], {}, "streams.jobs.budget_cap: must be at least the budget"),
        ([stream()], {"streams.job.rate": 2.0}, "unknown stream"),
        ([stream()], {"services.jobs-1.budget": 2.0}, "unknown service"),
    ],
)
def test_what_is_wrong_with_a_stream_is_said_at_its_table(
    streams: list[dict[str, Any]], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ScenarioError, match=message) as caught:
        market(*streams, **changes)
    assert len(caught.value.problems) == 1  # not once for each of its services


def test_a_problem_of_a_stream_has_the_line_of_its_key() -> None:
    text = MARKET + tables("streams", {**stream(), "arrival": 99})
    with pytest.raises(ScenarioError, match=r"market.toml:17: streams.jobs.arrival: must be at most the 25 rounds"):
        parse(text, "market.toml")


def test_a_file_without_services_is_refused_as_before() -> None:
    with pytest.raises(ScenarioError, match="services: is missing"):
        parse(MARKET)
    with pytest.raises(ScenarioError, match="services: must have at least 1 item"):
        parse(MARKET.replace("rounds", "services = []\nrounds"))


ANYONE, FEW = stream(budget=4.0, patience=9.0), stream(name="few", count=2, rate=None, times=[0.0, 3.5], budget=2.0)
SPECIAL = {"clients.groups": [{"name": "phones", "count": 3, "services": ["jobs"]}]}


def test_a_group_of_clients_names_a_stream_for_all_of_its_services() -> None:
    one = market(ANYONE, FEW, **{"clients.groups": [{"name": "some", "count": 3, "services": ["jobs-2", "few"]}]})
    assert eligibility(one)[:, 0].tolist() == [False, True, False, False, True, True]
    assert eligibility(one)[:, 3:].all()


@pytest.mark.parametrize(
    ("order", "other"), [("random", "fifo"), ("fifo", "srsf"), ("srsf", "random"), ("venn", "fifo")]
)
@pytest.mark.parametrize("clock", [{}, {"timeline": {"slot": 2.0, "deadline": 1.0}}], ids=["continuous", "slots"])
def test_what_a_scheduler_decides_is_cleared_again_by_verify(
    order: str, other: str, clock: dict[str, Any], tmp_path: Path
) -> None:
    rules = {"market.mechanism": "scheduler", "market.options.order": order, "clients.speed": [0.2, 1.0], "rounds": 12}
    run = played(market(ANYONE, FEW, **SPECIAL, **rules, **clock), tmp_path)
    verdict = verify(run)
    assert (verdict.problems, verdict.unchecked) == ([], [])
    scenario = run.path / "scenario.toml"
    scenario.write_text(scenario.read_text().replace(f'order = "{order}"', f'order = "{other}"'))
    assert any("it should be" in it or "the mechanism" in it for it in verify(run).problems)


BY_EVENTS = {"timeline.decide": ["free"], "clients.speed": [0.05, 4.0], "rounds": 7}


def test_where_events_end_rounds_too_services_come_and_go_by_slots(tmp_path: Path) -> None:
    given = stream(rate=None, times=[0.0, 1.0, 1.0, 2.0], patience=1.0, target_accuracy=0.9)
    for rounds in range(3, 8):
        run = played(market(given, **{**BY_EVENTS, "rounds": rounds}), tmp_path / str(rounds))
        assert verify(run).problems == []
    assert {Status.GAVE_UP, Status.WAITING} <= {row["status"] for row in table(run.path, "rounds")}


def test_who_arrives_as_a_market_goes_on_that_was_restored_has_a_whole_budget() -> None:
    scenario = market(stream(rate=None, times=[0.0, 1.0, 1.0, 2.0]), **BY_EVENTS)

    def granted(restored: int) -> list[list[int]]:
        found: list[list[int]] = []
        setup = build(scenario, 1, Shelf())
        while not setup.market.finished:
            seen = setup.market.open_round()
            found.append([service.budget for service in setup.market.services])
            setup.market.close_round({name: setup.policies[name].act(it) for name, it in seen.items()})
            if setup.market.round == restored:
                state, arrays = json.loads(json.dumps(setup.market.state())), setup.federation.state()
                setup = build(scenario, 1, Shelf())
                setup.federation.restore(arrays)
                setup.market.restore(state)
        return found

    whole = granted(0)
    assert [granted(number) for number in range(1, 7)] == [whole] * 6


def test_the_screen_says_that_a_service_has_given_up_and_measures_what_reports_do(run: RunDirectory) -> None:
    session = Session("streams")
    DirectoryFeed(session, run.path).read()
    last = len(session.history)
    words = [Moment(session, last).absence(m) for m in range(4)]
    met = [session.history.exit_of(m, last) is not None for m in range(4)]
    left = [status is Status.LEFT for status in (row.status for row in session.history[last].services)]
    for text, has_left, reached in zip(words, left, met, strict=True):
        assert text.endswith(", having reached its target" if reached else ", as its patience was over") == has_left
    assert "patience" in "".join(words)
    whole, shown = read([run.path])[0], result_at(session, last, 25)
    assert shown.to_target.rounds.tolist() == whole.to_target.rounds.tolist()
    assert shown.to_target.reached.tolist() == whole.to_target.reached.tolist()
