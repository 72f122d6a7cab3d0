"""A scenario chooses how its clients behave; runs log what that is worth to them, and can be judged and replayed."""

import csv
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from des.behaviours.behaviour import BEHAVIOURS
from flmarket.analysis.results.run_results import read
from flmarket.analysis.verification.verify import verify
from scenarios.build import Shelf
from scenarios.file.checks import played as played_catalogue
from scenarios.file.problems import ScenarioError
from scenarios.file.schema import Scenario
from scenarios.loader import dumps, load, parse
from scenarios.logs.directory import RunDirectory
from scenarios.logs.reading import LoggedRound, rounds_text
from scenarios.running.batch import plan
from scenarios.running.runner import Run, execute
from scenarios.world import World
from support.runs import reseal
from support.shell import flmarket
from tui.widgets.preview import story

BEHAVIOURS_OF = {
    "markup": {"share": 0.25},
    "adaptive": {"exploration": 0.5},
    "misreport": {"size": 0.5, "emd": -0.3, "share": 0.5},
    "ring": {"size": 4},
}
SURROGATE = ["rounds=12", "training.backend=surrogate", "clients.speed=[0.3, 1.0]", "timeline.upload_seconds=0.1"]

PLUGIN = '''
import flmarket

@flmarket.behaviour("even")
class Even(flmarket.Behaviour):
    """Asks twice its cost in even rounds."""

    def bids(self, round_, costs):
        return costs * (2 if round_ % 2 == 0 else 1)

    def bid_range(self, lowest, highest):
        return lowest, highest * 2
'''


def with_behaviour(kind: str, **options: object) -> list[str]:
    return [f"clients.behaviour.kind={kind}", *(f"clients.behaviour.options.{k}={v}" for k, v in options.items())]


def scenario_of(kind: str) -> Scenario:
    return load("scarce", [*SURROGATE, *with_behaviour(kind, **BEHAVIOURS_OF.get(kind, {}))])


def run_of(out: Path, kind: str) -> Run:
    [run] = plan([scenario_of(kind)], ["hqfa"], [0], out, Shelf())
    return run


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The directory of a complete run of a behaviour."""
    out, found = tmp_path_factory.mktemp("runs"), {}

    def play(kind: str) -> Path:
        if kind not in found:
            run = run_of(out, kind)
            execute(run, Shelf())
            found[kind] = run.directory.path
        return found[kind]

    return play


def test_truthful_clients_are_the_default_and_leave_the_hash_as_it_is(two_services: str) -> None:
    assert parse(two_services, overrides=["clients.behaviour.kind=truthful"]) == parse(two_services)


def test_another_behaviour_is_written_down(two_services: str) -> None:
    scenario = parse(two_services, overrides=with_behaviour("markup", share=0.25))
    assert parse(dumps(scenario)) == scenario


@pytest.mark.parametrize(
    ("table", "line", "problem"),
    [
        (['kind = "adaptve"'], 2, "kind: unknown behaviour 'adaptve'; did you mean 'adaptive'? (--plugin FILE loads "),
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
def test_bad_options_are_one_line_with_their_place_and_status_2(
    two_services: str, tmp_path: Path, table: list[str], line: int, problem: str
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("\n".join([two_services, "[clients.behaviour]", *table]) + "\n")
    place = f"{file}:{len(two_services.splitlines()) + 1 + line}: clients.behaviour.{problem}"
    for command in (["validate", str(file)], ["run", str(file), "--out", str(tmp_path / "runs")]):
        done = flmarket(*command)
        assert done.returncode == 2
        assert done.stderr.startswith(place)
        assert len(done.stderr.splitlines()) == 1
    with pytest.raises(ScenarioError):
        load(file)


@pytest.mark.parametrize("kind", BEHAVIOURS_OF)
def test_a_run_is_logged_sealed_and_valid(kind: str, played: Callable[[str], Path]) -> None:
    folder = played(kind)
    assert verify(RunDirectory(folder)).problems == []
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


@pytest.mark.parametrize("kind", BEHAVIOURS_OF)
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


def test_adaptive_bids_follow_what_was_paid_earlier(played: Callable[[str], Path], tmp_path: Path) -> None:
    """``verify`` lets clients learn again from the logs: with other money in them, later bids are not theirs."""
    folder = Path(shutil.copytree(played("adaptive"), tmp_path / "run"))
    for name in ("offers", "clients"):
        path = folder / f"{name}.csv"
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            if row["round"] == "1" and row["paid"]:
                row["paid"] = f"{float(row['paid']) * 3:.6f}"
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    reseal(folder)
    problems = [text for text in verify(RunDirectory(folder)).problems if "the run's seed draws" in text]
    assert problems
    assert not any(text.startswith("round 1:") for text in problems)


def test_a_run_that_lost_its_clients_is_not_valid(played: Callable[[str], Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(played("markup"), tmp_path / "run"))
    (folder / "clients.csv").unlink()
    assert verify(RunDirectory(folder)).problems == [f"{folder / 'clients.csv'}: is missing"]


KILLED = """
import os, signal, sys
from scenarios.build import Shelf
from scenarios.loader import parse
from scenarios.running import checkpoint
from scenarios.running.batch import plan
from scenarios.running.runner import execute

checkpoint.INTERVAL = 0.0

def kill(report):
    if report.round == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

[run] = plan([parse(sys.stdin.read())], ["hqfa"], [0], __import__("pathlib").Path(sys.argv[1]), Shelf())
execute(run, Shelf(), observers=[kill])
"""


@pytest.mark.parametrize("after", [1, 7])
def test_adaptive_clients_that_are_killed_go_on_and_end_with_the_same_bytes(
    played: Callable[[str], Path], tmp_path: Path, after: int
) -> None:
    run = run_of(tmp_path, "adaptive")
    command = [sys.executable, "-c", KILLED, str(tmp_path), str(after)]
    done = subprocess.run(command, input=dumps(scenario_of("adaptive")), text=True, timeout=100, env=os.environ)
    assert done.returncode == -signal.SIGKILL
    again: list[int] = []
    execute(run, Shelf(), observers=[lambda report: again.append(report.round)])
    assert again == list(range(after + 1, 13))
    whole = played("adaptive")
    for path in sorted(whole.glob("*.csv")):
        assert (run.directory.path / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("kind", ["truthful", *BEHAVIOURS_OF])
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
    for kind in ("truthful", *BEHAVIOURS_OF):
        [run] = read([played(kind)])
        spent = run.spent.sum(axis=0)
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


def test_the_table_is_exported_and_missing_where_clients_are_truthful(
    played: Callable[[str], Path], tmp_path: Path
) -> None:
    done = flmarket("export", str(played("markup")), "--table", "clients", "--csv", str(tmp_path / "all.csv"))
    assert done.returncode == 0
    assert (
        (tmp_path / "all.csv").read_text().startswith("scenario,policy,seed,round,service,client,data_size,reported_")
    )
    refused = flmarket("export", str(played("truthful")), "--table", "clients", "--csv", str(tmp_path / "none.csv"))
    assert refused.returncode == 2
    assert refused.stderr == (
        f"{played('truthful')}: has no clients.csv: its clients are truthful, so offers.csv holds all of it\n"
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


def test_a_behaviour_of_a_plugin_is_recorded_and_needed_only_to_check_bids(tmp_path: Path) -> None:
    plugin = tmp_path / "even.py"
    plugin.write_text(PLUGIN)
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
    for kind, options in {"truthful": {}, **BEHAVIOURS_OF}.items():
        lines = list(story(parse(two_services, overrides=with_behaviour(kind, **options))))
        asked[kind] = next(line for line in lines if " asks " in line)
        assert any(f'clients.behaviour.kind = "{kind}"' in line for line in lines) == (kind != "truthful")
    assert len(set(asked.values())) == 5
    monkeypatch.setattr(BEHAVIOURS, "_registered", {})
    unknown = parse(two_services, overrides=with_behaviour("even"), catalogue=played_catalogue())
    said = "What it asks is not known: the behaviour even is not loaded here."
    assert any(line.endswith(said) for line in story(unknown))


@pytest.mark.parametrize("mechanism", ["uniform-price", "proportional-share", "iterated"])
def test_clients_learn_under_every_mechanism_and_verify_follows_both(mechanism: str, tmp_path: Path) -> None:
    changes = [*SURROGATE, *with_behaviour("adaptive"), f"market.mechanism={mechanism}"]
    [run] = plan([load("scarce", changes)], ["hqfa"], [0], tmp_path, Shelf())
    execute(run, Shelf())
    assert verify(run.directory).problems == []
