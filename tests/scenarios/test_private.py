"""A market with secrets: the built-in scenario ``private``, checked, explained, watched, learned in."""

from collections.abc import Callable
from pathlib import Path

import pytest

from des.money import to_micro
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.verification.verify import verify
from flmarket.analysis.what_if.agent_view import looked_at
from learning.training.loop import Plan
from scenarios.build import Shelf
from scenarios.loader import ScenarioError, load
from scenarios.logs.directory import RunDirectory
from scenarios.logs.reading import LoggedRound
from scenarios.train import AgentTraining
from scenarios.train import run as train
from scenarios.world import World
from support.runs import change, played, rounds_text, table
from support.worlds import WORLDS
from tui.state.bid_verdicts import RoundBook


@pytest.fixture
def good(run_of: Callable[[str], RunDirectory]) -> Path:
    return run_of("private").path


def test_private_is_paper_but_for_its_secrets_and_the_backend() -> None:
    private, paper = load("private"), load("paper", ["training.backend=surrogate"])
    public = load("private", ["clients.cost.noise=0", "market.bids=public", "market.dqi=value", "market.dqi_noise=0"])
    assert private.clients.cost.noise
    assert (private.market.bids, private.market.dqi) == ("own", "rank")
    assert private.market.dqi_noise
    update = {"name": paper.name, "description": paper.description}
    assert public.model_copy(update=update) == paper


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


def test_the_logs_hold_true_costs_and_the_true_dqi(good: Path) -> None:
    logs = Logs.read(RunDirectory(good))
    for row, offer in zip(table(good, "clients"), table(good, "offers"), strict=True):
        number, client, m = int(row["round"]), int(row["client"]), logs.places[row["service"]]
        factor = logs.population._cost_noise.factors(number)[client]
        for size, emd, amount in (("data_size", "emd", row["cost"]), ("reported_size", "reported_emd", row["bid"])):
            cost = to_micro(0.025 * int(row[size]) - float(row[emd]))
            assert to_micro(float(amount)) == round(cost * factor)
        drawn = logs.population.draw(number)
        assert float(offer["dqi"]) == drawn.dqi[m, client] != drawn.seen[m, client]


def test_a_bid_must_follow_from_the_clients_cost_in_that_round(copy_of: Callable[[str], Path]) -> None:
    """Not just from a cost that some round could have made of the data."""
    run = copy_of("private")
    factors = Logs.read(RunDirectory(run)).population._cost_noise.factors(1)
    first = table(run, "offers")[0]
    change(run, "offers", {"bid": f"{float(first['bid']) / factors[int(first['client'])]:.6f}"})
    assert any(": bid is " in problem for problem in verify(RunDirectory(run)).problems)


def test_an_agent_is_asked_again_with_what_it_saw(tmp_path: Path) -> None:
    """One core, so that it pays more than the bid now and then; a rival's bid would have been the number to beat."""
    changes = ["training.backend=surrogate", "rounds=4", "market.bids=own", "market.dqi_noise=0.1"]
    logs = Logs.read(played(load("scarce", changes), tmp_path, "mahdrl"))
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
    world = World(WORLDS["private"].load(), 0)
    logged = LoggedRound.read(next(iter(rounds_text(good))))
    book = RoundBook(logged, world)
    for offer in logged.offers:
        line = book.line(["mnist", "fashion-mnist", "emnist"].index(offer.service), offer.client)
        assert (line.bid, line.dqi, line.data_size) == (offer.bid, offer.dqi, offer.data_size)


def test_an_agent_can_be_trained_on_it(tmp_path: Path) -> None:
    scenario = load("private", ["rounds=5"])
    schedule = Plan(episodes=2, epsilon_episodes=1, evaluate_every=2, evaluation_seeds=(900_001,))
    for policy in ("mahdrl", "mahdrl-paper"):
        out = tmp_path / f"{policy}.safetensors"
        train(AgentTraining(scenarios=(scenario,), policy=policy, options={}, plan=schedule), 0, out, Shelf())
        changes = [
            word
            for service in scenario.services
            for word in (f"services.{service.name}.policy={policy}", f"services.{service.name}.checkpoint={out}")
        ]
        assert verify(played(load("private", ["rounds=5", *changes]), tmp_path / "runs")).problems == []
