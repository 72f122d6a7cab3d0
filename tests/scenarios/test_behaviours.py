"""A scenario chooses how its clients behave; runs log what that is worth to them, and can be judged and replayed."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from des.behaviour import BEHAVIOURS
from flmarket.analysis.results.run_results import read
from flmarket.analysis.verification.verify import verify
from learning.play_round import play_round
from scenarios.build import Shelf, build
from scenarios.file.checks import played as played_catalogue
from scenarios.file.problems import ScenarioError
from scenarios.loader import load, parse
from scenarios.logs.directory import RunDirectory
from scenarios.logs.reading import LoggedRound
from scenarios.world import World
from support.runs import edit, rounds_text
from support.scenarios import problems
from support.shell import flmarket
from support.worlds import BEHAVIOURS as OWN
from support.worlds import EVEN, SURROGATE, behaving
from tui.style.sentences import story


@pytest.fixture
def played(run_of: Callable[[str], RunDirectory]) -> Callable[[str], Path]:
    """The directory of a complete run of a behaviour."""
    return lambda kind: run_of(kind).path


def test_truthful_clients_are_the_default_and_leave_the_hash_as_it_is(two_services: str) -> None:
    assert parse(two_services, overrides=["clients.behaviour.kind=truthful"]) == parse(two_services)


@pytest.mark.parametrize(
    ("table", "line", "problem"),
    [
        (['kind = "adaptve"'], 2, "kind: unknown behaviour 'adaptve'; did you mean 'adaptive'? (for one of "),
        (['kind = "markup"', "options = { shares = 1 }"], 3, "options.shares: behaviour 'markup' takes no option "),
        (
            ['kind = "markup"', "options = { share = -1 }"],
            3,
            "options.share: behaviour 'markup': share must be a number from 0 to 5, or [lowest, highest], not -1",
        ),
        (['kind = "misreport"'], 2, "kind: behaviour 'misreport': nothing is misreported; set size or emd to a bias "),
        (['kind = "misreport"', "options = { size = nan }"], 3, "options: must hold finite numbers only"),
    ],
)
def test_bad_options_are_one_line_with_their_place(
    two_services: str, table: list[str], line: int, problem: str
) -> None:
    [found] = problems("\n".join([two_services, "[clients.behaviour]", *table]))
    assert found.startswith(f"f:{len(two_services.splitlines()) + 1 + line}: clients.behaviour.{problem}")


@pytest.mark.parametrize("kind", OWN)
def test_a_run_logs_what_clients_hold_say_and_earn(kind: str, played: Callable[[str], Path]) -> None:
    folder = played(kind)
    clients, offers = pd.read_csv(folder / "clients.csv"), pd.read_csv(folder / "offers.csv")
    assert len(clients) == len(offers) > 100
    assert (clients["bid"] == offers["bid"]).all()
    assert (clients["reported_size"] == offers["data_size"]).all()
    served = clients[clients["paid"].notna()]
    assert (served["profit"] - (served["paid"] - served["cost"])).abs().max() < 1e-9
    assert served["profit"].sum() > 0
    assert (clients["data_size"] != clients["reported_size"]).any() == (kind == "misreport")
    assert "clients.csv" in RunDirectory(folder).meta()["files"]


def test_truthful_runs_have_no_further_table(played: Callable[[str], Path]) -> None:
    folder = played("truthful")
    assert not (folder / "clients.csv").exists()
    assert "clients.csv" not in RunDirectory(folder).meta()["files"]


@pytest.mark.parametrize("kind", OWN)
def test_what_clients_hold_does_not_depend_on_how_they_behave(kind: str, played: Callable[[str], Path]) -> None:
    """All policies and behaviours face the same data and costs; only bids and reports differ."""
    key = ["round", "service", "client"]
    honest = pd.read_csv(played("truthful") / "offers.csv").set_index(key)
    other = pd.read_csv(played(kind) / "clients.csv").set_index(key)[["data_size", "emd", "cost"]]
    both = honest.join(other.add_prefix("held_"), how="inner")
    assert len(both) > 50
    assert (both["data_size"] == both["held_data_size"]).all()
    assert (both["emd"] == both["held_emd"]).all()
    assert (both["bid"] == both["held_cost"]).all()


def test_adaptive_bids_follow_what_was_paid_earlier(copy_of: Callable[[str], Path]) -> None:
    """``verify`` lets clients learn again from the logs: with other money in them, later bids are not theirs."""
    folder = copy_of("adaptive")

    def triple(rows: list[dict[str, str]]) -> None:
        for row in rows:
            if row["round"] == "1" and row["paid"]:
                row["paid"] = f"{float(row['paid']) * 3:.6f}"

    for name in ("offers", "clients"):
        edit(folder, name, triple)
    problems = [text for text in verify(RunDirectory(folder)).problems if "the run's seed draws" in text]
    assert problems
    assert not any(text.startswith("round 1:") for text in problems)


def test_a_run_that_lost_its_clients_is_not_valid(copy_of: Callable[[str], Path]) -> None:
    folder = copy_of("markup")
    (folder / "clients.csv").unlink()
    assert verify(RunDirectory(folder)).problems == [f"{folder / 'clients.csv'}: is missing"]


@pytest.mark.parametrize("kind", ["truthful", *OWN])
def test_a_screen_sees_the_bids_of_the_run_in_any_order_of_rounds(kind: str, played: Callable[[str], Path]) -> None:
    run = RunDirectory(played(kind))
    scenario = parse(run.scenario_text())
    world = World(scenario, 0)
    logged = [LoggedRound.read(text) for text in rounds_text(run.path)]
    names = [service.name for service in scenario.services]
    for number in (12, 3, 1, 7, 12):
        qualities = world.qualities(number, lambda earlier: logged[earlier - 1].offers)
        for offer in logged[number - 1].offers:
            at = names.index(offer.service), offer.client
            assert qualities.bid[at] == offer.bid
            assert qualities.data_size[at] == offer.data_size


def test_a_screen_that_cannot_know_the_bids_says_so(played: Callable[[str], Path]) -> None:
    world = World(parse(RunDirectory(played("adaptive")).scenario_text()), 0)
    with pytest.raises(ValueError, match="clients learn: their bids follow from the offers of earlier rounds"):
        world.qualities(3)


def test_measures_of_what_clients_earn(played: Callable[[str], Path]) -> None:
    for kind in ("truthful", *OWN):
        [run] = read([played(kind)])
        spent = run["spent"].sum(axis=0)
        offers = pd.read_csv(played(kind) / "offers.csv")
        assert run.income.sum() == pytest.approx(spent.sum())
        if kind == "truthful":
            assert (run.earnings["profit"] == 0).all()
            assert run.income.sum() == pytest.approx(offers[offers["outcome"] == "served"]["bid"].sum())
        else:
            clients = pd.read_csv(played(kind) / "clients.csv")
            by_service = clients.groupby("service")["profit"].sum()
            assert run.by_service(run.earnings["profit"]) == pytest.approx(
                [by_service[name] for name in run.setting.services]
            )


def test_the_report_shows_misreports_where_clients_may_misreport(played: Callable[[str], Path]) -> None:
    lies, honest = (
        flmarket("report", str(played(kind)), "--format", "csv").stdout for kind in ("misreport", "truthful")
    )
    for measure in ("client profit", "income Gini", "spending HHI", "wasted"):
        assert measure in lies
        assert measure in honest
    for measure in ("misreport profit", "overstated"):
        assert measure in lies
        assert measure not in honest


def test_where_clients_are_truthful_there_is_no_such_table_to_export(
    played: Callable[[str], Path], tmp_path: Path
) -> None:
    done = flmarket("export", str(played("truthful")), "--table", "clients", "--csv", str(tmp_path / "none.csv"))
    assert (done.returncode, done.stderr) == (
        2,
        f"{played('truthful')}: has no clients.csv: its clients are truthful, so offers.csv holds all of it\n",
    )


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_runs_with_truthful_clients_are_left_out_of_an_export_of_the_others(
    form: str, played: Callable[[str], Path], tmp_path: Path
) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow")
    runs, file = [str(played("truthful")), str(played("markup"))], tmp_path / f"all.{form}"
    done = flmarket("export", *runs, "--table", "clients", f"--{form}", str(file))
    assert done.returncode == 0, done.stderr
    assert done.stderr == "1 of 2 runs left out: without clients.csv, as their clients are truthful\n"
    assert done.stdout == f"{file}: clients of 1 run\n"
    read = pd.read_csv if form == "csv" else pd.read_parquet
    assert len(read(file)) == len(pd.read_csv(played("markup") / "clients.csv"))


@pytest.mark.slow
def test_a_behaviour_of_a_plugin_is_recorded_and_needed_only_to_check_bids(tmp_path: Path) -> None:
    plugin = tmp_path / "even.py"
    plugin.write_text(EVEN)
    sets = [word for change in [*SURROGATE, "clients.behaviour.kind=even"] for word in ("--set", change)]
    done = flmarket(
        "run", "scarce", "--policy", "hqfa", "--plugin", str(plugin), "--out", str(tmp_path / "runs"), *sets
    )
    assert done.returncode == 0, done.stderr
    [folder] = (tmp_path / "runs").glob("*/hqfa/seed-0000")
    assert "behaviour even" in RunDirectory(folder).meta()["plugins"]
    assert "even" not in BEHAVIOURS.names()
    assert verify(RunDirectory(folder)).problems == []
    again = flmarket("verify", str(folder), "--rerun", "--plugin", str(plugin))
    assert "same bytes again" in again.stdout
    with pytest.raises(ScenarioError, match="unknown behaviour 'even'"):
        parse(RunDirectory(folder).scenario_text())


def test_a_preview_says_what_clients_ask_and_how_they_behave(
    two_services: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {}
    for kind, changes in {"truthful": (), **OWN}.items():
        lines = list(story(parse(two_services, overrides=changes)))
        asked[kind] = next(line for line in lines if " asks " in line)
        assert any(f'clients.behaviour.kind = "{kind}"' in line for line in lines) == (kind != "truthful")
    assert len(set(asked.values())) == 5
    monkeypatch.setattr(BEHAVIOURS, "_registered", {})
    unknown = parse(two_services, overrides=behaving("even"), catalogue=played_catalogue())
    said = "What clients have and ask is not known here: unknown behaviour 'even'"
    assert any(line.startswith(said) for line in story(unknown))


def test_clients_that_ask_more_are_worth_no_more_to_services_that_state_values() -> None:
    """The policy `worth` under `score-auction`, where it names all clients that are worth what they ask."""
    offered = []
    for kind in ("truthful", "markup"):
        changes = {"sweep": {}, "market.mechanism": "score-auction", "rounds": 5, "clients.behaviour.kind": kind}
        scenario = load("mechanisms", changes)
        setup = build(scenario, 0, Shelf())
        rows = [offer for _ in range(5) for offer in play_round(setup.market, setup.policies).offers]
        offered.append({(it.round, it.service, it.client): it.payment for it in rows})
    truth, dearer = offered
    assert len(dearer) > 100
    assert dearer.items() <= truth.items()  # the others ask more than they are worth
