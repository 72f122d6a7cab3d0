"""``[sweep]`` and ``[[runs]]``: one file, a grid of scenarios, and an explicit list."""

import pytest

from scenarios.file.schema import Scenario
from scenarios.loader import ScenarioError, dumps, load, parse, points, with_policy, with_values
from support.scenarios import problems


@pytest.fixture
def scenario(market: str) -> Scenario:
    return parse(market)


def test_no_sweep_is_one_point(scenario: Scenario) -> None:
    (point,) = points(scenario)
    assert (dict(point.values), point.label, point.scenario) == ({}, "", scenario)


def test_the_grid_is_walked_in_the_order_of_the_file(market: str) -> None:
    text = market + '[sweep]\n"services.mnist.budget" = [10, 15]\n"clients.cores" = [1, 2, 3]\n'
    grid = points(parse(text))
    assert [(p.scenario.services[0].budget, p.scenario.clients.cores) for p in grid] == [
        (10.0, 1), (10.0, 2), (10.0, 3), (15.0, 1), (15.0, 2), (15.0, 3),
    ]  # fmt: skip
    assert grid[1].label == "services.mnist.budget=10, clients.cores=2"
    assert grid[1].values == {"services.mnist.budget": 10, "clients.cores": 2}
    assert all(p.scenario.sweep == {} for p in grid)
    assert grid[0].scenario.services[1].budget == 10.5


def test_a_star_sweeps_a_key_of_all_services(market: str) -> None:
    text = market + '[sweep]\n"services.*.budget" = [10, 15]\n'
    grid = points(parse(text))
    assert [{service.budget for service in point.scenario.services} for point in grid] == [{10.0}, {15.0}]
    assert grid[0].label == "services.*.budget=10"
    assert "overlaps with services.*.budget" in "".join(problems(text + '"services.mnist.budget" = [1, 2]\n'))
    assert "is swept by this scenario: set sweep.services.*.budget" in "".join(
        problems(text, "services.mnist.budget=3")
    )


def test_tables_do_as_well_as_quoted_keys(market: str) -> None:
    dotted = parse(market + '[sweep]\n"clients.cores" = [1, 2]\n"clients.count" = [3]')
    tables = parse(market + "[sweep]\nclients.cores = [1, 2]\nclients.count = [3]")
    header = parse(market + "[sweep.clients]\ncores = [1, 2]\ncount = [3]")
    assert dotted == tables == header


def test_whole_lists_and_absent_keys_can_be_swept(market: str) -> None:
    text = market + '[sweep]\n"clients.data_size" = [[100], [50, 100]]\n"timeline.deadline" = [1, 2]'
    grid = points(parse(text))
    assert [(p.scenario.clients.data_size, p.scenario.timeline.deadline) for p in grid] == [
        ((100,), 1.0), ((100,), 2.0), ((50, 100), 1.0), ((50, 100), 2.0),
    ]  # fmt: skip


def test_points_are_scenarios_of_their_own(market: str) -> None:
    """A point's resolved text loads back, and has nothing of the sweep."""
    for point in points(parse(market + "[sweep]\nrounds = [1, 2]")):
        assert parse(dumps(point.scenario)) == point.scenario


@pytest.mark.parametrize(
    ("sweep", "problem"),
    [
        ('"clients.coers" = [1]', "37: sweep.clients.coers: unknown key; did you mean 'cores'?"),
        ('"client.cores" = [1]', "37: sweep.client.cores: unknown key; did you mean 'clients'?"),
        ('"rounds.x" = [1]', "37: sweep.rounds.x: rounds is not a table"),
        ('"services.mnits.budget" = [1]',
         "37: sweep.services.mnits.budget: unknown service 'mnits'; did you mean 'mnist'?"),
        ('"services.mnist.bugdet" = [1]', "37: sweep.services.mnist.bugdet: unknown key; did you mean 'budget'?"),
        ('"services" = [1]', "37: sweep.services: must name a service and one of its keys: services.NAME.budget"),
        ('"services.mnist.name" = ["x"]', "37: sweep.services.mnist.name: cannot be swept"),
        ('"name" = ["x"]', "37: sweep.name: cannot be swept"),
        ('"clients.cores" = 3', "37: sweep.clients.cores: must be a list, not 3"),
        ('"clients.cores" = []', "37: sweep.clients.cores: must have at least 1 item, not 0"),
        ('"clients.cores" = [\n1,\n0]',
         "39: sweep.clients.cores: with clients.cores=0: must be greater than or equal to 1, not 0"),
        ('"clients.cores" = [1, "2"]',
         '37: sweep.clients.cores: with clients.cores="2": must be a valid integer, not "2"'),
        ('"clients.cores" = [1, 2, 1]', "37: sweep.clients.cores: lists 1 twice"),
        ('"services.mnist.budget" = [1, 1.0]', "37: sweep.services.mnist.budget: lists 1.0 twice"),
        ('"clients.cores" = [1]\nclients.cores = [2]', "38: sweep.clients.cores: is in the sweep twice (line 37)"),
        ('"clients.cost" = [{per_sample=1, per_emd=1}]\n"clients.cost.per_emd" = [1]',
         "38: sweep.clients.cost.per_emd: overlaps with clients.cost (line 37)"),
        ('"clients.count" = [2, 2026-01-01]', "37: sweep.clients.count: must not hold a date or a time of day"),
        ('"rounds" = ' + str(list(range(1, 102))) + '\n"clients.count" = ' + str(list(range(1, 101))),
         "36: sweep: makes 10,100 scenarios; the limit is 10,000"),
        ("\n".join(f'"services.mnist.policy_options.x{i}" = [1]' for i in range(101)),
         "36: sweep: must have at most 100 items, not more"),
        # Fine in itself, not in its place.
        ('"clients.cores" = [1]\n"clients.data_size" = [[9], [5000]]',
         '38: sweep.clients.data_size: with clients.cores=1, clients.data_size=[5000]: '
         "5,000 images are more than the 1,438 training images of digits"),
        ('"services.mnist.policy" = ["lcfa", "hqfb"]',
         '37: sweep.services.mnist.policy: with services.mnist.policy="hqfb": '
         "unknown policy 'hqfb'; did you mean 'hqfa'? (for one of your own, load its plug-in file)"),
        # Makes the fault of another key.
        ('"services.mnist.dataset" = ["mnist", "pair"]',
         '37: sweep.services.mnist.dataset: with services.mnist.dataset="pair": training.eval_samples: '
         "must be at most 200, the test images of pair, not 300"),
    ],
)  # fmt: skip
def test_problems_have_the_line_of_the_swept_key(market: str, sweep: str, problem: str) -> None:
    text = market.replace("learning_rate = 0.05", "eval_samples = 300")
    cheap = text.replace("per_emd = 1.0", "per_emd = 0.1")
    assert problems(f"{cheap}\n[sweep]\n{sweep}\n", "dqi=published") == [f"f:{problem}"]


def test_a_combination_may_be_wrong_where_its_values_are_not(market: str) -> None:
    text = market + '\n[sweep]\n"timeline.slot" = [3, 9]\n"timeline.deadline" = [2, 5]'
    assert problems(text) == [
        "f:38: sweep.timeline.deadline: with timeline.slot=3, timeline.deadline=5: "
        "must be at most the slot of 3.0 seconds, not 5.0"
    ]


def test_a_sweep_can_be_set_and_a_swept_key_cannot(market: str) -> None:
    text = market + '[sweep]\n"clients.cores" = [1, 2]'
    changed = parse(text, overrides=["sweep.clients.cores=[3]", "sweep.rounds=[4, 5]"])
    assert [p.label for p in points(changed)] == [
        "clients.cores=3, rounds=4",
        "clients.cores=3, rounds=5",
    ]
    assert problems(text, "clients.cores=3") == [
        "clients.cores=3: is swept by this scenario: set sweep.clients.cores=[...] instead"
    ]


def test_scenarios_made_by_hand_are_checked_too(scenario: Scenario) -> None:
    swept = scenario.model_copy(update={"sweep": {"clients.cores": (1, 0)}})
    with pytest.raises(ScenarioError) as caught:
        points(swept)
    message = "with clients.cores=0: must be greater than or equal to 1, not 0"
    assert str(caught.value) == f"scenario market: sweep.clients.cores: {message}"


RUNS = """
[[runs]]
clients.cores = 1
"services.mnist.budget" = 10

[[runs]]
services.digits.policy = "random"
"""


def test_each_table_of_runs_is_a_scenario(market: str) -> None:
    scenario = parse(market + RUNS)
    first, second = points(scenario)
    assert first.values == {"clients.cores": 1, "services.mnist.budget": 10}
    assert (first.scenario.clients.cores, first.scenario.service("mnist").budget) == (1, 10)
    assert second.values == {"services.digits.policy": "random"}
    assert (second.scenario.clients.cores, second.scenario.service("digits").policy) == (2, "random")
    assert not first.scenario.runs


def test_with_a_sweep_every_table_meets_every_point(market: str) -> None:
    scenario = parse(market + RUNS + "[sweep]\nrounds = [2, 3]\n")
    assert [point.values["rounds"] for point in points(scenario)] == [2, 3, 2, 3]
    assert len({point.label for point in points(scenario)}) == 4


@pytest.mark.parametrize(
    ("runs", "problem"),
    [
        ("[[runs]]\nclients.coers = 1\n", "did you mean 'cores'?"),
        ("[[runs]]\nclients.cores = 0\n", "with clients.cores=0: must be greater than or equal to 1, not 0"),
        ("[[runs]]\nservices.mnits.budget = 1\n", "unknown service 'mnits'; did you mean 'mnist'?"),
        ("[[runs]]\nname = 'x'\n", "cannot be swept"),
        ("[[runs]]\nclients.cores = 1\n[sweep]\nclients.cores = [1, 2]\n", "is swept too"),
        ("[[runs]]\n'clients.cost' = 3\nclients.cost.per_emd = 1.0\n", "overlaps with clients.cost"),
        ("[[runs]]\ntimeline.deadline = 5\ntimeline.slot = 3\n", "must be at most the slot"),
        ("[[runs]]\n", "runs"),
        ("[runs]\nclients.cores = 1\n", "runs"),
    ],
)
def test_a_mistake_in_runs_is_named_with_its_line(runs: str, problem: str, market: str) -> None:
    [found, *_] = [text for text in problems(market + runs) if problem in text]
    assert int(found.split(":")[1]) > market.count("\n")


def test_the_command_line_does_not_change_what_runs_set(market: str) -> None:
    [found] = problems(market + RUNS, "clients.cores=2")
    assert "is in this scenario's [[runs]], which it would not change: set runs=[] before it" in found
    assert parse(market + RUNS, overrides=["runs=[]", "clients.cores=2"]).clients.cores == 2
    scenario = parse(market + RUNS + "[sweep]\nrounds = [2, 3]\n")
    with pytest.raises(ScenarioError, match="policy"):
        with_policy(scenario, "hqfa")
    with pytest.raises(ScenarioError, match="rounds"):
        with_values(scenario, {"rounds": 3})


def test_the_number_of_services_is_swept_by_taking_the_first_ones() -> None:
    found = points(load("paper", {"sweep": {"services.count": [1, 3], "services.mnist.budget": [5.0, 6.0]}}))
    assert [[service.name for service in it.scenario.services] for it in found] == [
        *[["mnist"]] * 2,
        *[["mnist", "fashion-mnist", "emnist"]] * 2,
    ]
    assert found[3].label == "services.count=3, services.mnist.budget=6.0"


@pytest.mark.parametrize("count", [0, 4, True, 1.5, "2"])
def test_a_number_of_services_that_there_are_not_is_refused_where_it_stands(count: object) -> None:
    with pytest.raises(ScenarioError, match=r"sweep\.services\.count.*must be 1 to 3: the first services"):
        load("paper", {"sweep": {"services.count": [2, count]}})


def test_a_service_that_is_not_among_the_first_ones_cannot_be_swept_there() -> None:
    with pytest.raises(ScenarioError, match=r"with services\.count=1, services\.emnist\.budget=5\.0: unknown service"):
        load("paper", {"sweep": {"services.count": [1, 3], "services.emnist.budget": [5.0]}})
