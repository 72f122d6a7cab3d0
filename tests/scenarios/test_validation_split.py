"""Runs with a validation split: what the market goes by, what is logged and reported; and runs without one."""

from collections.abc import Callable

import pandas as pd
import pytest

from flmarket.analysis.results.measures import MEASURES
from flmarket.analysis.results.report import make_report
from flmarket.analysis.results.report_tables import introduction
from flmarket.analysis.results.run_results import read
from flmarket.analysis.verification.verify import verify
from learning.statistics.measure import MARKET
from scenarios.build import Shelf, build_federation
from scenarios.loader import builtin_names, dumps, load, parse, settled
from scenarios.logs.columns import ROUNDS
from scenarios.logs.reading import LoggedRound
from scenarios.running.batch_run import Run
from scenarios.running.runner import execute
from support.runs import planned, reseal, rounds_text
from support.scenarios import problems

Play = Callable[..., Run]
LEARNS = ("rounds=6", "services.beta.target_accuracy=0.5", "training.model=mlp", "training.local_epochs=2")


@pytest.fixture(scope="module")
def play(two_services: str, tmp_path_factory: pytest.TempPathFactory, shelf: Shelf) -> Play:
    """``play("training.validation=0", seed=...)``: a run; alpha trains for six rounds, beta leaves on its way."""

    def make(*overrides: str, seed: int = 0) -> Run:
        scenario = parse(two_services, overrides=[*LEARNS, *overrides])
        run = planned(scenario, tmp_path_factory.mktemp("runs"), seed=seed)
        execute(run, shelf, workers=0)
        return run

    return make


@pytest.fixture(scope="module")
def with_split(play: Play) -> Run:
    return play()


@pytest.fixture(scope="module")
def without(play: Play) -> Run:
    return play("training.validation=0")


def table(run: Run) -> pd.DataFrame:
    return pd.read_csv(ROUNDS.path(run.directory.path))


# What is the default, and for whom


def test_new_scenarios_have_a_split_and_those_of_the_paper_say_that_they_have_none(two_services: str) -> None:
    assert parse(two_services).training.validation == 0.1
    split_off = {name: load(name).training.validation for name in builtin_names()}
    paper = {name for name in split_off if name.startswith("paper")} | {"private"}  # the paper's market, with secrets
    assert {name: share for name, share in split_off.items() if share == 0} == dict.fromkeys(paper, 0.0)
    assert {share for name, share in split_off.items() if name not in paper} == {0.1}


def test_where_nothing_is_trained_nothing_is_held_out() -> None:
    """The surrogate has one accuracy."""
    scenario = load("scarce", ["training.backend=surrogate", "rounds=2"])
    assert not scenario.split
    federation = build_federation(scenario, 0, Shelf())
    assert {federation.test_accuracy(service.name) for service in scenario.services} == {None}
    assert parse(dumps(settled(scenario))) == settled(scenario)


# What the market goes by


def test_test_accuracy_stands_at_the_end_of_each_row(with_split: Run, without: Run) -> None:
    assert tuple(table(with_split).columns) == ROUNDS.names
    assert tuple(table(without).columns) == ROUNDS.names
    assert table(with_split)["test_accuracy"].notna().all()
    assert list(table(without)["test_accuracy"]) == list(table(without)["accuracy"])


def test_rewards_and_exits_go_by_the_accuracy_on_validation_images(with_split: Run) -> None:
    rows = table(with_split)
    assert (rows["accuracy"] != rows["test_accuracy"]).any()
    alpha, beta = (rows[rows["service"] == name] for name in ("alpha", "beta"))
    assert list(alpha["reward"]) == pytest.approx(list(60 ** alpha["accuracy"]), rel=1e-5)
    met = beta["accuracy"] >= 0.5
    assert met.any()
    assert list(beta["status"].isin(["reached", "left"])) == list(met.cummax())
    assert len(set(beta[met]["test_accuracy"])) == 1  # held from the exit on, like accuracy
    events = pd.read_csv(with_split.directory.path / "events.csv")
    evaluated = events[(events["event"] == "evaluate") & (events["service"] == "alpha")]
    assert list(evaluated["amount"].round(6)) == list(alpha[alpha["served"] > 0]["accuracy"])


def test_the_seed_draws_the_split(play: Play, with_split: Run) -> None:
    """Both seeds' accuracies are shares of 100 of the validation images, but not of the same ones."""
    assert list(table(play(seed=1))["accuracy"]) != list(table(with_split)["accuracy"])
    assert list(table(play())["accuracy"]) == list(table(with_split)["accuracy"])


def test_policies_observe_the_accuracy_on_validation_images(two_services: str, shelf: Shelf) -> None:
    from scenarios.build import build

    setup = build(parse(two_services), 0, shelf, workers=0)
    seen = setup.market.open_round()["alpha"].accuracy
    setup.federation.close()
    assert seen == setup.federation.accuracy("alpha") != setup.federation.test_accuracy("alpha")


# What is checked


def test_a_test_accuracy_stays_while_nobody_is_served(play: Play) -> None:
    run = play()
    path = ROUNDS.path(run.directory.path)
    lines = path.read_text().splitlines(keepends=True)
    assert ",beta," in lines[-1]
    assert ",left," in lines[-1]
    lines[-1] = lines[-1].rpartition(",")[0] + ",0.990000\n"
    path.write_text("".join(lines))
    reseal(path.parent)
    [problem] = verify(run.directory).problems
    assert "round 6, beta: no client served, but the test accuracy changes to " in problem
    assert problem.endswith(" to 0.990000")


def test_images_that_are_held_out_do_not_supply_clients(two_services: str) -> None:
    """300 images at EMD 0.6 can need 120 of a label; 139 are there, and less than 120 after a fifth is held out."""
    changes = ["clients.data_size=[300]", "clients.emd=[0.6]"]
    parse(two_services, overrides=changes)
    [problem] = problems(two_services, *changes, "training.validation=0.2")
    assert problem.endswith(
        "300 images at EMD 0.6 can need 120 of one of the 10 labels; "
        "the rarest label of digits has 139, of which training.validation = 0.2 leaves 111"
    )


def test_a_split_of_less_than_one_image_is_refused(two_services: str) -> None:
    [problem] = problems(two_services, "training.validation=0.0001")
    assert problem.endswith(
        "0.0001 of the 1,438 training images of digits is not one image; set a larger share, or 0 "
        "to measure accuracy on the test images"
    )


# What is reported


def test_reports_show_test_accuracy_and_rounds_to_target_go_by_the_other(with_split: Run) -> None:
    [result] = read([with_split.directory.path])
    rows = table(with_split)
    found = {measure.name: measure.values(result) for measure in MEASURES}
    for name in ("alpha", "beta"):
        own = rows[rows["service"] == name]
        assert found["final accuracy"][name] == pytest.approx(100 * own["test_accuracy"].iloc[-1])
        assert found["AUC"][name] == pytest.approx(100 * own["test_accuracy"].mean())
    beta = rows[rows["service"] == "beta"]
    assert found["rounds to target"]["beta"] == beta[beta["status"] == "reached"]["round"].item()
    assert found["AUC"][MARKET] == pytest.approx(100 * rows["test_accuracy"].mean())


def test_a_report_says_which_accuracy_it_shows(with_split: Run, without: Run) -> None:
    sentence = (
        "Accuracies are measured on test images. Targets, exits and rewards go by the accuracy on validation images, "
        "which no client has"
    )
    both, one, other = (
        introduction(make_report(read([run.directory.path for run in runs])))
        for runs in ((with_split, without), (with_split,), (without,))
    )
    assert f"{sentence}." in one
    assert f"{sentence}; in scenarios without these, on test images, too." in both
    assert not any("validation" in text for text in other)


def test_a_logged_round_has_the_test_accuracy(with_split: Run, without: Run) -> None:
    for run in (with_split, without):
        rows = [row for text in rounds_text(run.directory.path) for row in LoggedRound.read(text).services]
        assert [row.test_accuracy for row in rows] == list(table(run)["test_accuracy"])
