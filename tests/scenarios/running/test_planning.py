"""The runs of a batch: what options set in the place of a scenario, and all policies at once."""

from collections.abc import Callable
from pathlib import Path

import pytest

import flmarket
from fl.data.registry import load as load_dataset
from flmarket.cli.loading import load_all
from flmarket.core.errors import InputError
from learning.policy import POLICIES
from scenarios.build import Shelf
from scenarios.loader import load, parse
from scenarios.running.batch import notes
from scenarios.running.planning import expand, plan_batch
from scenarios.running.run_options import RunOptions
from scenarios.running.runner import execute


def test_a_backend_and_rounds_take_the_place_of_the_scenarios(one_service: str, tmp_path: Path) -> None:
    options = RunOptions(out=tmp_path, backend="surrogate", rounds=2)
    [run] = plan_batch([load("quickstart")], [], [0], options, Shelf())
    assert (run.scenario.training.backend, run.scenario.rounds) == ("surrogate", 2)
    with pytest.raises(InputError, match=r"training\.backend=none: must be 'real'"):
        plan_batch([parse(one_service)], [], [0], RunOptions(backend="none"), Shelf())


def test_options_are_applied_before_the_scenario_is_checked_which_is_done_once(
    one_service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = one_service.replace('policy = "random"', 'policy = "random"\narrival = 5\n')
    late = late.replace("local_epochs = 1", "local_epochs = 2")
    (tmp_path / "late.toml").write_text(late)  # its 4 rounds are too few
    monkeypatch.chdir(tmp_path)
    [scenario] = load_all(["late.toml"], [], {"rounds": 6, "training.backend": "surrogate"})
    assert scenario.rounds == 6
    [run] = plan_batch([scenario], [], [0], RunOptions(out=tmp_path, rounds=6, backend="surrogate"), Shelf())
    assert (run.scenario.rounds, run.scenario.training.backend) == (6, "surrogate")
    assert len(flmarket.run("late.toml", rounds=5, backend="surrogate", progress=False).runs) == 1
    with pytest.raises(InputError, match=r"late\.toml:\d+: services\.alpha\.arrival: must be at most the 4"):
        load_all(["late.toml"], [], {"rounds": 4})
    with pytest.raises(InputError, match=r"rounds=4: services\.alpha\.arrival: must be at most the 4 rounds, not 5"):
        plan_batch([scenario], [], [0], RunOptions(rounds=4), Shelf())


def test_a_run_that_is_named_twice_is_played_once_which_is_said(
    one_service: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    twice = parse(one_service + '[[runs]]\n"clients.cores" = 1\n[[runs]]\n"clients.cores" = 1\n')
    once = parse(one_service)
    for scenarios in ([once, parse(one_service)], [twice], [once, twice]):
        said: list[str] = []
        runs = plan_batch(scenarios, [], [0, 0], RunOptions(out=tmp_path), Shelf(), said.append)
        assert len(runs) == 1
        [note] = said
        assert note.startswith("named more than once, and played once: small ")
    assert len(plan_batch([once], [], [0, 0], RunOptions(out=tmp_path), Shelf(), said.append)) == len(said)
    (tmp_path / "small.toml").write_text(one_service)
    monkeypatch.chdir(tmp_path)
    assert len(flmarket.run(["small.toml", "./small.toml"], rounds=1).runs) == 1
    assert "named more than once, and played once: small" in capsys.readouterr().err


def test_points_that_are_the_same_run_are_refused_by_whoever_reads_the_file(one_service: str) -> None:
    with pytest.raises(InputError, match=r"sweep: training\.validation=0\.0 and .* are the same run"):
        parse(
            one_service + "[sweep]\n'training.validation' = [0.0, 0.1]\n",
            overrides=["training.backend=surrogate", "training.local_epochs=2"],
        )


def test_a_trace_may_be_longer_than_a_shortened_run(
    one_service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [f"{client},{1 if client < 4 else 4},9" for client in range(8)]
    (tmp_path / "trace.csv").write_text("\n".join(["client,from,to", *rows]) + "\n")
    monkeypatch.chdir(tmp_path)
    scenario = parse(one_service.replace("[clients]", '[clients]\navailability = "trace.csv"'))
    [run] = plan_batch([scenario], [], [0], RunOptions(out=tmp_path, rounds=2), Shelf())
    execute(run, Shelf(), workers=0)
    assert run.directory.meta()["rounds"] == 2


def test_nothing_is_drawn_before_a_run_is_played(tmp_path: Path) -> None:
    """The command plans runs, and notes what is to be known of them; a worker plays them."""
    opened: list[str] = []
    shelf = Shelf(lambda name: opened.append(name) or load_dataset(name))  # type: ignore[func-returns-value]
    [run] = plan_batch([load("quickstart")], [], [0], RunOptions(out=tmp_path), shelf)
    notes([run.scenario], shelf)
    assert opened == ["digits"]  # which scikit-learn has


@pytest.mark.slow
def test_all_are_the_policies_that_can_play_and_the_others_are_named() -> None:
    names, notes = expand(["fmore(weight=4)", "all"], [load("quickstart")], Shelf())
    assert names == ["fmore(weight=4)", *(name for name in POLICIES.names() if name != "mahdrl-paper")]
    [note] = notes  # Algorithm 1 has an agent for each of the paper's services, and for no other
    assert "policy mahdrl-paper is left out" in note
    assert expand(["all"], [load("paper")], Shelf()) == (POLICIES.names(), [])


def test_a_plug_in_that_cannot_be_loaded_is_left_out(install_package: Callable[..., None], one_service: str) -> None:
    install_package("acme_broken", "1 / 0", "flmarket.policies", broken="acme_broken:Broken")
    names, notes = expand(["all"], [parse(one_service)], Shelf())
    assert "broken" not in names
    assert any("policy broken is left out: " in note for note in notes)


def test_that_no_policy_can_play_is_an_error() -> None:
    with pytest.raises(InputError, match=r"no policy can play here; policy bwk is left out: .*fused"):
        expand(["all"], [load("quickstart", ["training.model=resnet8", "training.kernel=fused"])], Shelf())
