"""What a trained agent looked at, in `flmarket explain`: its decisions are made again, and must be the log's."""

import re
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from fl.arithmetic.streams import stream
from fl.surrogate.fitted import Fit, add, surrogate_fit
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.what_if.agent_view import looked_at
from flmarket.analysis.what_if.explain import Explanation
from learning.mahdrl.agent import Brain
from learning.mahdrl.hyper_parameters import MahdrlSettings
from learning.training import agent_files
from scenarios.loader import load
from support.runs import played


def logs_of(out: Path, name: str, policy: str, *changes: str) -> Logs:
    return Logs.read(played(load(name, ["training.backend=surrogate", "rounds=6", *changes]), out, policy))


def words(logs: Logs, number: int, service: str) -> list[str]:
    world = next(world for at, world in logs.worlds() if at == number)
    return list(looked_at(logs, number, service, world))


@pytest.fixture(scope="module")
def scarce(tmp_path_factory: pytest.TempPathFactory) -> Logs:
    return logs_of(tmp_path_factory.mktemp("runs"), "scarce", "mahdrl")


def test_each_decision_is_made_again(scarce: Logs) -> None:
    """From the third service's point of view, too, once others have left: all that an agent sees is in the logs."""
    for number in scarce.numbers:
        for service in scarce.places:
            rated, expected, *rest = words(scarce, number, service)
            assert rated.startswith("mahdrl rated clients by what they add to a set: highest ")
            assert expected.startswith("It expected its offers to be served with a probability of ")
            assert rest


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory) -> Logs:
    return logs_of(tmp_path_factory.mktemp("runs"), "paper", "mahdrl", "rounds=80")


def test_close_decisions_follow_from_the_accuracy_that_the_logs_round(paper: Logs) -> None:
    """In this round, the six decimals of rounds.csv lead to other offers."""
    assert words(paper, 24, "emnist")[0].startswith("mahdrl rated clients ")


def test_clients_that_are_rated_the_same_have_the_same_rank_and_a_draw_decides(paper: Logs) -> None:
    """`paper` has 16 kinds of data and 20 clients: some are always alike."""
    rated = words(paper, 1, "mnist")[0]
    best = re.search(r"highest \d+ \((.*?)\), \d+ \((.*?)\), \d+ \((.*?)\)\.", rated)
    assert best is not None
    assert best[1] == best[2] == best[3]
    assert rated.endswith("Its offers went to the ranks 1, 1. Of clients that it rated the same, it drew some.")


def test_without_lots_nothing_is_said_of_a_draw(tmp_path: Path) -> None:
    logs = logs_of(tmp_path, "paper", "mahdrl-single")
    assert not any("drew" in line for service in logs.places for line in words(logs, 1, service))


def test_decisions_follow_from_interventions_and_from_who_has_left(tmp_path: Path) -> None:
    logs = logs_of(tmp_path, "quickstart", "mahdrl", "services.digits.target_accuracy=0.2", "services.strokes.budget=9")
    assert "left" in set(logs.rounds_of(6)["status"])
    for number in logs.numbers:
        assert words(logs, number, "strokes")[0].startswith("mahdrl rated clients ")


def test_an_agent_that_watches_its_money_for_the_run_is_asked_with_what_was_left(tmp_path: Path) -> None:
    """A total that binds from the second round on, so that another one would be another decision."""
    logs = logs_of(tmp_path, "scarce", "mahdrl", "services.mnist-rich.total_budget=60")
    budgets = [logs.rounds_of(number).loc["mnist-rich", "budget"] for number in (1, 5)]
    assert 0 < budgets[1] < budgets[0]
    for number in logs.numbers:
        assert words(logs, number, "mnist-rich")[0].startswith("mahdrl rated clients ")


def test_what_was_overbid_for_is_named_with_the_chances(scarce: Logs) -> None:
    row = next(scarce.offers[scarce.offers["payment"] > scarce.offers["bid"]].itertuples())
    told = " ".join(words(scarce, row.round, row.service))
    assert "It offered client " in told
    assert ": at the bid it expected to be served with " in told
    raised = (scarce.offers["payment"] > scarce.offers["bid"]).groupby(
        [scarce.offers["round"], scarce.offers["service"]]
    )
    number, service = next(key for key, some in raised.any().items() if not some)
    assert words(scarce, number, service)[-1] == "It offered every client its bid."


def test_the_paper_s_agent_has_ratings_and_payments_and_no_chances(tmp_path: Path) -> None:
    logs = logs_of(tmp_path, "paper", "mahdrl-paper")
    for number in logs.numbers:
        rated, paid, *_ = words(logs, number, "mnist")
        assert rated.startswith("mahdrl-paper rated clients by what they add to a set: highest ")
        assert paid.startswith("It offered client ") or paid == "It offered every client its bid."


def test_an_explanation_holds_it(scarce: Logs) -> None:
    service = next(iter(scarce.places))
    told = words(scarce, 2, service)
    sentences = list(Explanation(scarce, 2, service).sentences())
    assert sentences[sentences.index(told[0]) :][: len(told)] == told


def test_a_policy_that_was_not_trained_has_looked_at_nothing(tmp_path: Path) -> None:
    assert words(logs_of(tmp_path, "scarce", "lcfa"), 1, "mnist-rich") == [
        "mnist-rich plays lcfa, which is no trained agent that could be asked what it looked at."
    ]


def test_another_agent_is_not_asked(scarce: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    service = next(iter(scarce.places))
    monkeypatch.setitem(scarce.meta["agents"], f"agent/{service}", "0" * 64)  # type: ignore[arg-type]
    assert words(scarce, 1, service) == [
        "What mahdrl looked at is not known: the agent here is not the one of the run."
    ]


def test_an_agent_that_is_gone_is_named(scarce: Logs, tmp_path: Path) -> None:
    gone, first = tmp_path / "gone.safetensors", scarce.scenario.services[0]
    services = [first.model_copy(update={"checkpoint": str(gone)}), *scarce.scenario.services[1:]]
    [line] = words(replace(scarce, scenario=scarce.scenario.model_copy(update={"services": services})), 1, first.name)
    assert line.startswith(f"What mahdrl looked at is not known: {gone}")


def test_a_decision_that_does_not_repeat_is_not_explained(tmp_path: Path) -> None:
    """Under posted prices the agent saw what the platform asks, which is not what clients bid."""
    logs = logs_of(
        tmp_path, "scarce", "mahdrl", "market.mechanism=posted-price", "market.options.price_per_sample=0.03"
    )
    assert words(logs, 1, "mnist-rich") == [
        "What mahdrl looked at is not known: from what it saw, it would decide otherwise here."
    ]


def test_an_agent_that_knows_its_learning_curve_is_asked_with_that_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the user's own fits have changed since, or are not here."""
    settings = MahdrlSettings(context=True, curve=True)
    brain = Brain.initial(stream(0, "test"), settings)
    brain.quality[...] *= 2.0  # what is known changes what is chosen
    agent = tmp_path / "agent.safetensors"
    agent_files.write(
        agent, "agent", brain.tensors(), {"policy": "mahdrl", "agents": None, "settings": asdict(settings)}
    )
    changes = ["dqi=published", "services.mnist.dataset=kmnist"]
    regime = load("paper", changes).training_for("kmnist")
    shipped = surrogate_fit("mnist", load("paper").training_for("mnist")).parameters

    def fit(folder: str, **changed: float) -> None:
        monkeypatch.setenv("FLMARKET_FITS", str(tmp_path / folder))
        parameters = {**shipped, **changed}
        add(tmp_path / folder / "surrogate.json", Fit("surrogate", "kmnist", regime, parameters, {}, {}))

    fit("then", step_size=0.5, step_emd=0.25, first_emd=1.1)
    logs = logs_of(tmp_path, "paper", f"mahdrl:{agent}", *changes)
    fit("now", step_size=1.0, step_emd=-0.75, first_emd=-2.7)
    for folder in ("now", "none"):
        monkeypatch.setenv("FLMARKET_FITS", str(tmp_path / folder))
        for number in logs.numbers:
            assert words(logs, number, "mnist")[0].startswith("mahdrl rated clients ")
    meta = {**logs.meta, "fits": {}}
    assert words(replace(logs, meta=meta), 1, "mnist") == [
        "What mahdrl looked at is not known: meta.json: fits: has no parameters 'surrogate/kmnist' of a learning curve."
    ]
