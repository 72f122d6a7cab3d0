"""A market with secrets: the built-in scenario ``private``, played, verified, resumed, forked, explained, watched."""

import csv
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import flmarket
from des.money import to_micro
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.verification.rerun import rerun
from flmarket.analysis.verification.verify import verify
from flmarket.analysis.what_if.agent_view import looked_at
from learning.mahdrl.training import Plan
from scenarios.build import Shelf
from scenarios.loader import ScenarioError, dumps, load, parse
from scenarios.logs.directory import CHECKPOINT, RunDirectory
from scenarios.logs.reading import LoggedRound, rounds_text
from scenarios.running import checkpoint
from scenarios.running.planning import plan
from scenarios.running.runner import Run, execute
from scenarios.train import Training
from scenarios.train import run as train
from scenarios.world import World
from support.runs import interrupt, reseal
from tui.state.order_book import Book
from tui.widgets.preview import story

SECRETS = ("clients.cost.noise", "market.bids", "market.dqi", "market.dqi_noise")
MISREPORT = ["clients.behaviour.kind=misreport", "clients.behaviour.options.size=0.5"]
RESULTS = ("scenario.toml", "rounds.csv", "offers.csv", "events.csv")


def run_of(out: Path, policy: str, *changes: str, name: str = "private", seed: int = 0) -> Run:
    [run] = plan([load(name, ["training.backend=surrogate", *changes])], [policy], [seed], out, Shelf())
    return run


def played(out: Path, policy: str, *changes: str, name: str = "private") -> Run:
    run = run_of(out, policy, *changes, name=name)
    execute(run, Shelf())
    return run


def table(path: Path, name: str) -> list[dict[str, str]]:
    with (path / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def change(path: Path, name: str, column: str, value: Callable[[dict[str, str]], str]) -> None:
    """Set a value in a table's first row, and the digests in meta.json, as one does who knows of them."""
    rows = table(path, name)
    rows[0][column] = value(rows[0])
    with (path / f"{name}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    reseal(path)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return played(tmp_path_factory.mktemp("good"), "hqfa", "rounds=12", *MISREPORT).directory.path


@pytest.fixture
def run(good: Path, tmp_path: Path) -> Path:
    """A copy to tamper with."""
    return Path(shutil.copytree(good, tmp_path / "run"))


# ---- the scenario


def test_private_is_paper_but_for_its_secrets_and_the_backend() -> None:
    private, paper = load("private"), load("paper", ["training.backend=surrogate"])
    public = load("private", ["clients.cost.noise=0", "market.bids=public", "market.dqi=value", "market.dqi_noise=0"])
    assert private.clients.cost.noise
    assert (private.market.bids, private.market.dqi) == ("own", "rank")
    assert private.market.dqi_noise
    update = {"name": paper.name, "description": paper.description}
    assert public.model_copy(update=update) == paper


def test_a_scenario_is_written_with_its_secrets() -> None:
    private = load("private")
    assert parse(dumps(private)) == private


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ("clients.cost.noise=1.5", "less than or equal to 1, not 1.5"),
        ("clients.cost.noise=-0.1", "greater than or equal to 0, not -0.1"),
        ("market.dqi_noise=2", "less than or equal to 1, not 2"),
        ('market.bids="hidden"', "must be"),
        ('market.dqi="none"', "must be"),
    ],
)
def test_what_cannot_be_meant_is_refused(key: str, problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem):
        load("private", [key])


def test_noise_counts_in_the_limit_of_costs() -> None:
    dear = ["clients.cost.per_sample=20000", "clients.cost.noise=0"]
    assert load("private", dear)
    with pytest.raises(ScenarioError, match=r"would be 11999999\.400000, above the limit of 10,000,000"):
        load("private", [*dear, "clients.cost.noise=0.5"])


def test_a_preview_says_what_is_secret() -> None:
    said = "\n".join(story(load("private")))
    for key in SECRETS:
        assert f"{key} = " in said
    assert "and asks 0.75 to 14.40 for training on them." in said
    assert "market." not in "\n".join(story(load("paper")))


# ---- verify


@pytest.mark.parametrize("policy", ["hqfa", "outbid", "mahdrl", "mahdrl-paper", "oracle", "adaptive clients"])
def test_runs_are_valid_and_the_same_again(policy: str, tmp_path: Path) -> None:
    changes = ["clients.behaviour.kind=adaptive"] if policy == "adaptive clients" else []
    run = played(tmp_path, "hqfa" if changes else policy, "rounds=6", *changes)
    assert verify(run.directory).problems == []
    assert rerun(run.directory, Shelf()) == []


def test_the_logs_hold_true_costs_and_the_true_dqi(good: Path) -> None:
    logs = Logs.read(RunDirectory(good))
    plain = load("private", ["rounds=12", *MISREPORT])
    assert plain.clients.cost.per_sample == 0.025
    for row, offer in zip(table(good, "clients"), table(good, "offers"), strict=True):
        number, client, m = int(row["round"]), int(row["client"]), logs.places[row["service"]]
        factor = logs.population.cost_factors(number)[client]
        for size, emd, amount in (
            ("data_size", "emd", row["cost"]),
            ("reported_size", "reported_emd", row["bid"]),
        ):
            cost = to_micro(0.025 * int(row[size]) - float(row[emd]))
            assert to_micro(float(amount)) == round(cost * factor)
        drawn = logs.population.draw(number)
        assert float(offer["dqi"]) == drawn.dqi[m, client] != drawn.seen[m, client]


@pytest.mark.parametrize(("name", "column"), [("offers", "bid"), ("clients", "cost"), ("offers", "dqi")])
def test_a_changed_number_is_found(run: Path, name: str, column: str) -> None:
    assert verify(RunDirectory(run)).problems == []
    change(run, name, column, lambda row: f"{float(row[column]) + 1e-6:.6f}")
    assert any("but the run's seed draws" in problem for problem in verify(RunDirectory(run)).problems)


def test_a_bid_must_follow_from_the_clients_cost_in_that_round(run: Path) -> None:
    """Not just from a cost that some round could have made of the data."""
    logs = Logs.read(RunDirectory(run))
    factors = logs.population.cost_factors(1)
    change(run, "offers", "bid", lambda row: f"{float(row['bid']) / factors[int(row['client'])]:.6f}")
    assert any("does not follow from the cost of its data" in problem for problem in verify(RunDirectory(run)).problems)


# ---- resumed, forked, explained, watched


@pytest.mark.parametrize("policy", ["pacing", "mahdrl"])
def test_an_interrupted_run_resumes_with_the_same_bytes(
    policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "INTERVAL", 0.0)
    changes = ["rounds=10", "clients.behaviour.kind=adaptive"]
    killed, whole = run_of(tmp_path / "killed", policy, *changes), played(tmp_path / "whole", policy, *changes)
    interrupt(killed, Shelf(), after=5)
    assert list((killed.directory.path / CHECKPOINT).glob("[0-9]*.json"))
    execute(killed, Shelf())
    for name in RESULTS:
        assert (killed.directory.path / name).read_bytes() == (whole.directory.path / name).read_bytes()


def test_a_fork_keeps_the_secrets(good: Path) -> None:
    [fork] = flmarket.fork(good, 6, [{"services.mnist.budget": 40}], progress=False)
    assert parse(RunDirectory(fork.path).scenario_text()).market == load("private").market
    assert verify(RunDirectory(fork.path)).problems == []


def test_an_agent_is_asked_again_with_what_it_saw(tmp_path: Path) -> None:
    """One core, so that it pays more than the bid now and then; a rival's bid would have been the number to beat."""
    run = played(tmp_path, "mahdrl", "rounds=8", "market.bids=own", "market.dqi_noise=0.1", name="scarce")
    logs = Logs.read(run.directory)
    words = [
        line
        for number, world in logs.worlds()
        for service in logs.places
        for line in looked_at(logs, number, service, world)
    ]
    assert all("rated clients by what they add" in line for line in words if line.startswith("mahdrl"))
    assert not any("is not known" in line for line in words)
    over = [line for line in words if line.startswith("It offered client ")]
    assert over
    assert all(line.endswith("; the client's bids to rivals are not public.") for line in over)


def test_the_order_book_shows_true_bids_and_quality(good: Path) -> None:
    world = World(load("private", ["rounds=12", *MISREPORT]), 0)
    logged = LoggedRound.read(next(iter(rounds_text(good))))
    book = Book(logged, world)
    for offer in logged.offers:
        line = book.line(["mnist", "fashion-mnist", "emnist"].index(offer.service), offer.client)
        assert (line.bid, line.dqi, line.data_size) == (offer.bid, offer.dqi, offer.data_size)


def test_an_agent_can_be_trained_on_it(tmp_path: Path) -> None:
    scenario = load("private", ["rounds=5"])
    schedule = Plan(episodes=4, epsilon_episodes=2, evaluate_every=2, evaluation_seeds=(900_001,))
    for policy in ("mahdrl", "mahdrl-paper"):
        out = tmp_path / f"{policy}.safetensors"
        train(Training(scenarios=(scenario,), policy=policy, options={}, plan=schedule), 0, out, Shelf())
        changes = [
            word
            for service in scenario.services
            for word in (f"services.{service.name}.policy={policy}", f"services.{service.name}.checkpoint={out}")
        ]
        [run] = plan([load("private", ["rounds=5", *changes])], [], [0], tmp_path / "runs", Shelf())
        execute(run, Shelf())
        assert verify(run.directory).problems == []
