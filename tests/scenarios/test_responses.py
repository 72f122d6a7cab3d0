"""Responses in scenario files: such markets are played, resumed, explained and verified; wrong keys are named."""

from pathlib import Path

import pytest

from fl.training.jobs import Diverged
from flmarket import read
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.verification.verify import verify
from flmarket.analysis.what_if.bounds import run_bounds
from flmarket.core.errors import InputError
from scenarios.build import Shelf, build
from scenarios.loader import load
from scenarios.logs.directory import RunDirectory
from scenarios.running.runner import execute
from support.runs import Row, change, edit, interrupt, planned, played, table
from support.shell import flmarket

SMALL = ["training.backend=surrogate", "rounds=3"]
REAL = ["training.eval_samples=200", "rounds=1", "clients.data_size=[60, 90]", "training.local_epochs=2"]
MARKETS = {
    "best responses": [*SMALL, "clients.response.kind=quadratic"],
    "clients that shirk": [*SMALL, "clients.response={kind='moral-hazard', options={least=0.3}}"],
    "best responses at prices of a mechanism": [
        *SMALL, "clients.response.kind=quadratic", "market.mechanism=vcg", "clients.cores=1",
    ],
    "clients that choose their speed": [
        *SMALL, "clients.response={kind='quadratic', of='speed'}", "timeline.deadline=0.6",
    ],
    "liars that respond": [
        *SMALL, "clients.response.kind=quadratic", "clients.behaviour.kind=misreport",
        "clients.behaviour.options.size=0.5",
    ],
    "prices that 64 bits do not hold in millionths": [
        *SMALL, "clients.response={kind='moral-hazard'}", "services.*.budget=1_000_000_000", "services.*.policy=greedy",
        "clients.cost={kind='unit', unit={choices=[60_000.0]}}", "clients.data_size=[150]", "clients.emd=[0.2]",
        "clients.behaviour={kind='markup', options={share=3.0}}",
    ],
    "services without money": [*SMALL, "clients.response.kind=quadratic", "services.*.budget=0"],
    "clients that leave": [*SMALL, "clients.response.kind=quadratic", "clients.departure_rate=0.4"],
    "label mixes": [
        *SMALL, "clients.response.kind=quadratic", "clients.emd=[]", "clients.label_mix.dirichlet=0.5",
        "clients.data_size=[40, 80]", "clients.cost.per_emd=0",
    ],
}  # fmt: skip
OWNED = ["data.partition=iid", "clients.emd=[]", "clients.cost.per_emd=0", "clients.data_size=[60]"]
TRAINED = {
    "data": [*REAL, "clients.response.kind=quadratic"],
    "data that clients own": [*REAL, *OWNED, "clients.response.kind=quadratic"],
    "epochs": [*REAL, "clients.response={kind='quadratic', of='epochs'}"],
    "epsilon": [*REAL, "clients.response={kind='quadratic', of='epsilon', epsilon=4.0, clip=0.5}"],
}


@pytest.mark.parametrize("kind", MARKETS)
def test_a_market_in_which_clients_respond_is_played_resumed_and_verified(kind: str, tmp_path: Path) -> None:
    scenario = load("quickstart", MARKETS[kind])
    run = played(scenario, tmp_path / "whole")
    assert verify(run).problems == []
    assert verify(run).unchecked == []
    answers = table(run.path, "responses")
    assert {row["done"] for row in answers} != {"1.000000"}
    begun = planned(scenario, tmp_path / "killed")
    interrupt(begun, Shelf(), after=2)
    execute(begun, Shelf(), workers=0)
    for name in ("responses", "clients", "offers", "rounds", "events"):
        assert (begun.directory.path / f"{name}.csv").read_bytes() == (run.path / f"{name}.csv").read_bytes()


@pytest.mark.slow
def test_where_noise_lets_training_diverge_the_error_says_so(tmp_path: Path) -> None:
    noisy = ["rounds=2", "clients.response={kind='moral-hazard', of='epsilon', epsilon=1e-6, clip=1e6}"]
    with pytest.raises(Diverged, match="its clients add noise to updates, or scale them"):
        played(load("quickstart", [*REAL, *noisy, "training.model=mlp"]), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("of", TRAINED)
def test_models_are_trained_with_the_part_that_is_done(of: str, tmp_path: Path) -> None:
    run = played(load("quickstart", TRAINED[of]), tmp_path / "part")
    assert verify(run).problems == []
    whole = played(load("quickstart", REAL), tmp_path / "whole")
    accuracies = [[row["accuracy"] for row in table(it.path, "rounds")] for it in (run, whole)]
    assert accuracies[0] != accuracies[1]
    ends = [[row["end"] for row in table(it.path, "offers") if row["end"]] for it in (run, whole)]
    assert (ends[0] != ends[1]) == (of != "epsilon")  # noise takes no time


def test_what_is_paid_and_worked_follows_from_the_answers(tmp_path: Path) -> None:
    run = played(load("quickstart", MARKETS["clients that shirk"]), tmp_path)
    offers = {(row["round"], row["service"], row["client"]): row for row in table(run.path, "offers")}
    clients = {(row["round"], row["service"], row["client"]): row for row in table(run.path, "clients")}
    for row in table(run.path, "responses"):
        key = row["round"], row["service"], row["client"]
        assert (row["promised"], offers[key]["paid"]) == ("1.000000", offers[key]["payment"])
        assert row["done"] == "0.300000"
        cost, bid = float(clients[key]["cost"]), float(clients[key]["bid"])
        assert cost == pytest.approx(0.3 * bid, abs=1e-6)


def test_half_the_speed_takes_twice_as_long_for_all_of_the_work(tmp_path: Path) -> None:
    whole = played(load("quickstart", SMALL), tmp_path / "whole")
    run = played(load("quickstart", [*SMALL, "clients.response={kind='quadratic', of='speed'}"]), tmp_path / "half")
    for row, other in zip(table(run.path, "offers"), table(whole.path, "offers"), strict=False):
        if (
            row["round"] == "1" and row["end"] and row["payment"] == row["bid"]
        ):  # a half is answered; the upload is .5 s
            lasts, full = (float(it["end"]) - float(it["start"]) - 0.5 for it in (row, other))
            assert lasts == pytest.approx(2 * full, abs=2e-6)
    sizes = [[row["samples"] for row in table(it.path, "rounds")][:3] for it in (run, whole)]
    assert sizes[0] == sizes[1]


FORGERIES = [
    ("responses", {"promised": "0.400000", "done": "0.400000"}, "the client's answer is not what responses.csv says"),
    ("responses", {"done": "0.100000"}, "the client's answer is not what responses.csv says (done)"),
    ("responses", {"done": "0.900000", "promised": "0.100000"}, "cannot promise 0.100000 and do 0.900000"),
    ("responses", {"client": "7"}, "responses.csv does not have one row for each award, in order"),
    ("responses", {"promised": "0.000000", "done": "0.000000"}, "is served, which is not what it answered"),
    ("clients", {"cost": "0.000001", "profit": "0.000001"}, "clients.csv does not have the cost of what the client"),
]


@pytest.mark.parametrize(("name", "values", "problem"), FORGERIES)
def test_a_forged_answer_is_found(name: str, values: Row, problem: str, tmp_path: Path) -> None:
    run = played(load("quickstart", MARKETS["best responses"]), tmp_path)
    served = table(run.path, "responses")[0]
    change(run.path, name, values, lambda row: all(row[key] == served[key] for key in ("round", "service", "client")))
    assert any(problem in found for found in verify(run).problems)


def test_paid_for_more_than_was_promised_is_found(tmp_path: Path) -> None:
    run = played(load("quickstart", MARKETS["best responses"]), tmp_path)

    def more(rows: list[Row]) -> None:
        row = next(row for row in rows if row["outcome"] == "served")
        row["paid"] = row["payment"]

    edit(run.path, "offers", more)
    assert any("was paid" in found for found in verify(run).problems)


@pytest.mark.parametrize(
    ("response", "problem"),
    [
        ("{kind='quadratc'}", "clients.response.kind: unknown response 'quadratc'; did you mean 'quadratic'?"),
        ("{of='epochs'}", ": has no kind, so that its other keys say nothing; name one"),
        ("{kind='quadratic', of='epochs'}", "clients.response.of: 'epochs' needs models that are trained, and backend"),
        ("{kind='quadratic', of='images'}", "clients.response.of: must be"),
        ("{kind='quadratic', epsilon=0}", "clients.response.epsilon: must be"),
        ("{kind='quadratic', options={curvature=2}}", "curvature must be a number from 1e-06 to 1, not 2"),
        ("{kind='moral-hazard', options={lest=0.5}}", "response 'moral-hazard' takes no option 'lest'; did you mean"),
    ],
)
def test_what_is_wrong_with_a_response_is_said_with_its_key(response: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        load("quickstart", [*SMALL, f"clients.response={response}"])
    assert problem in str(caught.value)


def test_bounds_are_refused_and_explain_says_who_promised_what(tmp_path: Path) -> None:
    run = played(load("quickstart", MARKETS["clients that shirk"]), tmp_path)
    assert "clients that do all of the work only" in run_bounds(Logs.read(run)).why_not
    service = table(run.path, "responses")[0]["service"]
    said = flmarket("explain", str(run.path), "--service", service, "--round", "1").stdout
    assert "100.0% (and did 30.0%)" in said
    assert "all of the work only" in said


CONTRACTS = """import numpy as np
from flmarket import Asks, Clearing, Mechanism, Menu, allocate, mechanism, response, Response


@mechanism("contracts")
class Contracts(Mechanism):
    def __init__(self, *, dearest=2.0):
        self.dearest = round(dearest * 1e6)

    def ask(self, bids, data_size):
        return Asks(np.maximum(bids, 2_000_000))

    def clear(self, book):
        core = allocate(book.services, book.clients, book.payments, book.cores, book.tie_order)
        return Clearing(core, book.payments)

    def menu(self, book, clearing):
        return Menu(np.array([0.5, 1.0]), np.array([800_000, self.dearest]))


@response("half")
class Half(Response):
    def respond(self, awards):
        return np.full(len(awards.price), 0.5)
"""


@pytest.fixture
def plugins(tmp_path: Path) -> str:
    (tmp_path / "contracts.py").write_text(CONTRACTS)
    return str(tmp_path / "contracts.py")


def run_of(folder: Path, *words: str) -> RunDirectory:
    sets = [part for key in SMALL for part in ("--set", key)]
    done = flmarket("run", "quickstart", "--policy", "hqfa", "--out", str(folder / "runs"), *sets, *words)
    assert done.returncode == 0, done.stderr
    [run] = (folder / "runs").glob("*/hqfa/seed-0000")
    return RunDirectory(run)


@pytest.mark.slow
def test_off_a_menu_clients_choose_or_decline_and_are_paid_by_it(plugins: str, tmp_path: Path) -> None:
    market = "--set", "market.mechanism=contracts", "--set", "clients.response.kind=quadratic"
    run = run_of(tmp_path, "--plugin", plugins, *market)
    done = flmarket("verify", str(run.path), "--plugin", plugins)
    assert (done.returncode, "valid" in done.stdout) == (0, True), done.stdout + done.stderr
    rows = {(row["outcome"], row["paid"]) for row in table(run.path, "offers") if row["outcome"] != "outbid"}
    assert rows == {("served", "0.800000"), ("served", "2.000000"), ("declined", "")}


def test_a_menu_that_pays_more_than_is_held_ends_the_run_with_the_place(plugins: str, tmp_path: Path) -> None:
    options = "market={mechanism='contracts', options={dearest=9999.0}}"
    market = "--set", options, "--set", "clients.response.kind=quadratic", *(f"--set={key}" for key in SMALL)
    done = flmarket("run", "quickstart", "--plugin", plugins, *market, "--out", str(tmp_path))
    assert done.returncode == 1
    assert "contracts.py" in done.stderr
    assert "a payment is below 0, or above the price of its offer" in done.stderr


def test_without_its_plugin_a_run_is_checked_as_far_as_it_can_be(plugins: str, tmp_path: Path) -> None:
    run = run_of(tmp_path, "--plugin", plugins, "--set", "clients.response.kind=half")
    verdict = verify(run)
    assert verdict.problems == []
    assert verdict.unchecked == [
        "what clients answer to awards, as response 'half' is not here, or is another one: load its file"
    ]
    change(run.path, "rounds", {"samples": "1"}, lambda row: row["samples"] != "")
    assert any("samples" in problem for problem in verify(run).problems)


def test_a_menu_from_which_nobody_chooses_is_noted(plugins: str, tmp_path: Path) -> None:
    words = "--plugin", plugins, "--set", "market.mechanism=contracts", *(f"--set={key}" for key in SMALL)
    done = flmarket("run", "quickstart", *words, "--out", str(tmp_path / "runs"))
    assert done.returncode == 0
    assert "posts a menu, from which only clients that respond choose" in done.stderr


def test_answers_are_exported_and_read(tmp_path: Path) -> None:
    run = played(load("quickstart", MARKETS["best responses"]), tmp_path)
    lines = flmarket("export", str(run.path), "--table", "responses", "--csv", "-").stdout.splitlines()
    assert lines[0] == "scenario,policy,seed,round,service,client,promised,done"
    answers = read(run.path).responses
    assert len(answers) == len(lines) - 1
    assert answers["promised"].between(0, 1).all()


def test_environments_play_markets_in_which_clients_respond() -> None:
    setup = build(load("quickstart", MARKETS["best responses"]), 0, Shelf())
    observations = setup.market.open_round()
    report = setup.market.close_round({name: setup.policies[name].act(it) for name, it in observations.items()})
    assert report.responses
    assert all(0 < answer.promised <= 1_000_000 for answer in report.responses)
