"""``--policy NAME`` and ``NAME:CHECKPOINT``, which come after the file and before what is set."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import scenarios.file.policy_choice
from flmarket.core.errors import InputError
from flmarket.core.names import folder_problem
from learning.policy import Policy, policy
from learning.training import agent_files
from scenarios.build import Shelf
from scenarios.file.policy_choice import PolicyChoice, policy_again
from scenarios.file.schema import Scenario
from scenarios.loader import ScenarioError, parse, points, with_policy, with_values
from scenarios.running.planning import plan

OWN = " (for one of your own, load its plug-in file)"


@pytest.fixture
def scenario(two_services: str) -> Scenario:
    return parse(two_services)


def played(scenario: Scenario) -> list[tuple[str, str | None, dict[str, object]]]:
    return [(service.policy, service.checkpoint, service.policy_options) for service in scenario.services]


def test_a_checkpoint_set_by_hand_survives_another_policy(two_services: str) -> None:
    scenario = parse(two_services, overrides=["services.alpha.checkpoint=mine.safetensors"])
    assert played(with_policy(scenario, "mahdrl")) == [("mahdrl", "mine.safetensors", {}), ("mahdrl", None, {})]


def test_it_does_so_at_every_point_of_a_sweep_and_with_other_rounds(two_services: str) -> None:
    text = two_services + '[sweep]\n"clients.cores" = [1, 2]\n'
    scenario = with_values(parse(text, overrides=["services.alpha.checkpoint=mine.safetensors"]), {"rounds": 2})
    for point in points(with_policy(scenario, "mahdrl")):
        assert point.scenario.services[0].checkpoint == "mine.safetensors"


def test_options_set_by_hand_survive_and_those_of_the_file_do_not(two_services: str) -> None:
    text = two_services.replace('policy = "random"', 'policy = "oort"\npolicy_options = { exploration = 0.5 }')
    scenario = parse(text, overrides=["services.alpha.policy_options.payments=offered"])
    assert scenario.services[0].policy_options == {"exploration": 0.5, "payments": "offered"}
    assert with_policy(scenario, "mahdrl").services[0].policy_options == {"payments": "offered"}
    whole = parse(text, overrides=["services.alpha.policy_options={payments='offered'}"])
    assert with_policy(whole, "mahdrl").services[0].policy_options == {"payments": "offered"}


def test_what_a_file_says_for_another_policy_gives_way(two_services: str) -> None:
    text = two_services.replace('policy = "random"', 'policy = "mahdrl"\ncheckpoint = "file.safetensors"', 1)
    scenario = parse(text)
    assert with_policy(scenario, "mahdrl").services[0].checkpoint == "file.safetensors"
    assert with_policy(scenario, "mahdrl-paper").services[0].checkpoint is None
    assert with_policy(scenario, "mahdrl:mine.safetensors").services[0].checkpoint == "mine.safetensors"


@pytest.mark.parametrize(
    ("chosen", "said", "alpha", "beta"),
    [
        ("mahdrl:a.st", "checkpoint=b.st", ("mahdrl", "b.st", {}), ("mahdrl", "a.st", {})),
        ("lcfa", "policy=hqfa", ("hqfa", None, {}), ("lcfa", None, {})),
        ("fmore(weight=4)", "policy_options.weight=2", ("fmore", None, {"weight": 2}), ("fmore", None, {"weight": 4})),
    ],
)
def test_what_is_set_comes_after_the_policy_and_can_be_played_again(
    two_services: str, chosen: str, said: str, alpha: object, beta: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scenarios.file.policy_choice, "agent_digest", lambda _, file: f"{file}-digest")
    scenario = with_policy(parse(two_services, overrides=[f"services.alpha.{said}"]), chosen)
    assert played(scenario) == [alpha, beta]
    label = PolicyChoice.parse(chosen).label_in(scenario)
    assert label.endswith("+as-configured")
    assert str(PolicyChoice.again(label, scenario)) == chosen
    assert policy_again(label, scenario) is None  # it would replace what was set


@pytest.mark.parametrize(
    ("chosen", "said", "problem"),
    [
        ("random", "services.alpha.checkpoint=b.st", "services.alpha.checkpoint: policy 'random' takes no checkpoint"),
        ("lcfa", "services.beta.policy_options.x=1", "services.beta.policy_options.x: policy 'lcfa' takes no option "),
        ("lcfa", "services.*.policy=hqfa", "no service would play it, as overrides come after it; leave one of "),
    ],
)
def test_nothing_that_was_asked_for_is_dropped(two_services: str, chosen: str, said: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        with_policy(parse(two_services, overrides=[said]), chosen)
    assert str(caught.value).startswith(f"policy {chosen!r}: {problem}")


def test_the_same_wish_twice_is_no_conflict(two_services: str) -> None:
    said = ["services.alpha.policy=mahdrl", "services.alpha.checkpoint=a.st"]
    scenario = with_policy(parse(two_services, overrides=said), "mahdrl:a.st")
    assert played(scenario) == [("mahdrl", "a.st", {}), ("mahdrl", "a.st", {})]


def test_a_sweep_over_policies_conflicts_with_one_for_all(two_services: str, tmp_path: Path) -> None:
    text = two_services + '[sweep]\n"services.alpha.policy" = ["random", "hqfa"]\n'
    with pytest.raises(ScenarioError) as caught:
        plan([parse(text)], ["random"], [0], tmp_path, Shelf())
    assert str(caught.value) == "policy 'random': services.alpha.policy: is swept by this scenario"


def test_a_sweep_over_options_comes_after_the_policy(two_services: str, tmp_path: Path) -> None:
    text = two_services + '[sweep]\n"services.alpha.policy_options.weight" = [1, 2]\n'
    runs = plan([parse(text)], ["fmore"], [0], tmp_path, Shelf())
    assert [run.scenario.services[0].policy_options for run in runs] == [{"weight": 1}, {"weight": 2}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("random:a.st", "policy 'random:a.st': services.alpha.checkpoint: policy 'random' takes no checkpoint"),
        ("mahdrl:", "policy 'mahdrl:': the path of a checkpoint must follow the colon: NAME:CHECKPOINT"),
        ("mahdrk:a.st", "unknown policy 'mahdrk'; did you mean 'mahdrl'?" + OWN),
    ],
)
def test_what_is_no_choice(two_services: str, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        with_policy(parse(two_services), text)
    assert str(caught.value) == message


def test_two_checkpoints_of_one_policy_do_not_share_a_directory(
    scenario: Scenario, write_agent: Callable[..., Path], tmp_path: Path
) -> None:
    mine = write_agent(tmp_path / "agents" / "mine.safetensors")
    other = write_agent(tmp_path / "agents" / "mine, too!.safetensors", another=True)
    choices = ["mahdrl", f"mahdrl:{mine}", f"mahdrl:{other}"]
    plain, first, second = plan([scenario], choices, [0], tmp_path / "runs", Shelf())
    assert plain.policy == "mahdrl"
    digests = [agent_files.digest(path)[:8] for path in (mine, other)]
    assert [run.policy for run in (first, second)] == [f"mahdrl@mine-{digests[0]}", f"mahdrl@mine-too-{digests[1]}"]
    assert len({run.directory.path for run in (plain, first, second)}) == 3
    assert len({run.directory.path.parent.parent for run in (plain, first, second)}) == 1  # to be compared
    assert first.scenario.services[0].checkpoint == str(mine)
    assert str(PolicyChoice.again(first.policy, first.scenario)) == f"mahdrl:{mine}"
    assert str(PolicyChoice.again(plain.policy, plain.scenario)) == "mahdrl"

    write_agent(mine, another=True)
    [retrained] = plan([scenario], [f"mahdrl:{mine}"], [0], tmp_path / "runs", Shelf())
    assert retrained.directory != first.directory


def test_a_checkpoint_that_is_not_there_is_named_before_anything_runs(scenario: Scenario, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.safetensors: cannot be read: No such file or directory"):
        plan([scenario], ["mahdrl:nowhere.safetensors"], [0], tmp_path, Shelf())


def test_a_policy_of_ones_own_gets_a_checkpoint_too(scenario: Scenario, tmp_path: Path) -> None:
    @policy("reader")
    class Reader(Policy):
        def __init__(self, context, *, checkpoint):
            super().__init__(context)

        def act(self, observation):
            raise NotImplementedError

    (tmp_path / "...").write_text("learned")
    [run] = plan([scenario], [f"reader:{tmp_path / '...'}"], [0], tmp_path / "runs", Shelf())
    assert run.policy == f"reader@{Reader.agent_digest(str(tmp_path / '...'))[:8]}"


@pytest.mark.parametrize("what", ["policy", "rival"])
def test_a_plug_in_file_is_loaded_by_itself(what: str) -> None:
    message = f"{what} 'mine.py:late': load the plug-in file mine.py first, then name late alone"
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        PolicyChoice.parse("mine.py:late", what)


def test_options_are_given_with_the_name_and_come_before_those_of_the_file(two_services: str) -> None:
    text = two_services.replace('policy = "random"', 'policy = "fmore"\npolicy_options = { weight = 2 }')
    changed = with_policy(parse(text), "fmore(weight=4)")
    assert played(changed) == [("fmore", None, {"weight": 4})] * 2
    choice = PolicyChoice.parse("mahdrl( payments = bid, curve=false ):mine.safetensors")
    assert (choice.name, choice.checkpoint) == ("mahdrl", "mine.safetensors")
    assert choice.options == {"payments": "bid", "curve": False}
    assert PolicyChoice.parse(str(choice)) == choice


@pytest.mark.parametrize("value", ["a, b", 'say "x", (y)', [[1, 2], [3]], {"low": 1, "high": [2, 3]}, -0.5, True])
def test_options_of_all_kinds_are_read_as_they_are_written(value: object) -> None:
    choice = PolicyChoice("fmore", options={"weight": value})
    assert PolicyChoice.parse(str(choice)) == choice


def test_runs_with_options_have_folders_of_their_own_and_are_played_again_by_them(
    two_services: str, tmp_path: Path
) -> None:
    four, plain = plan([parse(two_services)], ["fmore(weight=4.5)", "fmore"], [0], tmp_path, Shelf())
    assert (four.policy, plain.policy) == ("fmore+weight=4.5", "fmore")
    assert str(PolicyChoice.again(four.policy, four.scenario)) == "fmore(weight=4.5)"


def test_a_label_tells_where_services_keep_options_of_the_scenario(two_services: str, tmp_path: Path) -> None:
    text = two_services.replace('policy = "random"', 'policy = "fmore"\npolicy_options = { weight = 2 }', 1)
    kept, four, other = plan([parse(text)], ["fmore", "fmore(weight=4)", "hqfa"], [0], tmp_path, Shelf())
    assert [run.policy for run in (kept, four, other)] == ["fmore+as-configured", "fmore+weight=4", "hqfa"]
    again = PolicyChoice.again(kept.policy, kept.scenario)
    assert again.label_in(with_policy(kept.scenario, str(again))) == kept.policy


@pytest.mark.parametrize(
    ("one", "other"), [(4, -4), ("a/b", "a-b"), ([1, 2], [1, 3]), ("x" * 30 + "1", "x" * 30 + "2")]
)
def test_other_values_have_other_labels_that_can_be_folders(one: object, other: object) -> None:
    labels = [PolicyChoice("fmore", options={"weight": value}).label for value in (one, other)]
    assert labels[0] != labels[1]
    assert not any(map(folder_problem, labels))


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ("fmore(wait=4)", "policy 'fmore' takes no option 'wait'"),
        ("fmore(wieght=4)", "takes no option 'wieght'; did you mean 'weight'?"),
        ("fmore(weight=4", "options stand between parentheses: fmore(KEY=VALUE)"),
        ("fmore(weight=4, weight=5)", "the option 'weight' is given twice; leave one out"),
        ("fmore(weight)", "weight: must be KEY=VALUE"),
        ("nobody(weight=4)", "unknown policy 'nobody'"),
    ],
)
def test_options_that_cannot_be_are_refused(choice: str, said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        PolicyChoice.parse(choice)
