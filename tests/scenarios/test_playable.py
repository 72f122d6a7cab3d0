"""All that a scenario names is tried before a batch starts, and by `flmarket validate`: no run is played in vain."""

from pathlib import Path

import pytest

import flmarket
from support import shell

PLUGINS = """\
from flmarket import Mechanism, Offer, Policy, mechanism, model, policy


@policy("frugal")
class Frugal(Policy):
    def __init__(self, context, *, share):
        super().__init__(context)
        if share > 1:
            raise ValueError("share must be at most 1")

    def act(self, observation):
        return Offer.none()


@mechanism("lottery")
class Lottery(Mechanism):
    def __init__(self, *, tickets):
        if tickets > 1:
            raise ValueError("tickets must be at most 1")

    def clear(self, book):
        raise NotImplementedError


@model("narrow")
def narrow(labels):
    from torch import nn

    return nn.Linear(3, labels)
"""

CASES = [
    (
        'policy = "frugal"\npolicy_options = { share = 2 }',
        "services.alpha.policy_options",
        "policy 'frugal' of service 'alpha': share must be at most 1 (mine.py:9, in Frugal.__init__)",
    ),
    (
        'policy = "lcfa"\n[market]\nmechanism = "lottery"\noptions = { tickets = 2 }',
        "market.options",
        "mechanism 'lottery': tickets must be at most 1 (mine.py:19, in Lottery.__init__)",
    ),
    ("model", "training.model", "model 'narrow' of service 'alpha', for 10 labels and images of 1 x 28 x 28: "),
]


def scenario_with(one_service: str, change: str) -> str:
    if change == "model":
        return one_service.replace("[training]", '[training]\nmodel = "narrow"')
    return one_service.replace('policy = "random"', change)


@pytest.mark.parametrize(("change", "key", "problem"), CASES)
def test_nothing_is_played_if_something_cannot_be_created(
    change: str, key: str, problem: str, one_service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(PLUGINS)
    flmarket.load_plugin("mine.py")
    Path("good.toml").write_text(one_service)
    Path("bad.toml").write_text(scenario_with(one_service, change))
    with pytest.raises(flmarket.InputError) as caught:
        flmarket.run(["good.toml", "bad.toml"], progress=False)
    assert str(caught.value).startswith(problem)
    assert not Path("runs").exists()


@pytest.mark.parametrize(("change", "key", "problem"), CASES)
def test_validate_names_the_line_and_the_key(
    change: str, key: str, problem: str, one_service: str, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(PLUGINS)
    text = scenario_with(one_service, change)
    (tmp_path / "bad.toml").write_text(text)
    done = shell.flmarket("validate", "bad.toml", "--plugin", "mine.py", cwd=tmp_path)
    last = key.rpartition(".")[2]
    line = next(n for n, found in enumerate(text.splitlines(), 1) if found.startswith(f"{last} = "))
    assert done.returncode == 2
    assert done.stderr.startswith(f"bad.toml:{line}: {key}: {problem}")


@pytest.mark.parametrize("dry", [True, False])
def test_run_names_the_line_and_the_key_of_an_option_or_a_checkpoint(
    dry: bool, one_service: str, tmp_path: Path
) -> None:
    chosen = one_service.replace('policy = "random"', 'policy = "hqfa"\npolicy_options = { foo = 1 }')
    (tmp_path / "option.toml").write_text(chosen)
    chosen = one_service.replace('policy = "random"', 'policy = "mahdrl"\ncheckpoint = "nope.safetensors"')
    (tmp_path / "agent.toml").write_text(chosen)
    run = ("run", "option.toml", "agent.toml", *(["--dry-run"] if dry else []))
    done = shell.flmarket(*run, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    option, agent = done.stderr.splitlines()
    assert option == (
        "option.toml:23: services.alpha.policy_options.foo: policy 'hqfa' takes no option 'foo'; it has none"
    )
    assert agent.startswith("agent.toml:23: services.alpha.checkpoint: nope.safetensors: cannot be read: No such file ")
    replaced = shell.flmarket(*run[:2], "--policy", "random", "--dry-run", cwd=tmp_path)
    assert replaced.returncode == 0, replaced.stderr


def test_validate_names_options_that_do_not_exist_with_all_else_that_is_wrong(one_service: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PLUGINS)
    text = one_service.replace("data_size = [20, 40]", "data_size = [20, 4000]")
    text = text.replace('policy = "random"', 'policy = "frugal"\npolicy_options = { shares = 1 }\ncheckpoint = "a.st"')
    (tmp_path / "bad.toml").write_text(
        text + '[market]\nmechanism = "lottery"\noptions = { prizes = 2, tickets = 1 }\n'
    )
    done = shell.flmarket("validate", "bad.toml", "--plugin", "mine.py", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "bad.toml:8: clients.data_size: 4,000 images are more than the 1,438 training images of digits",
        "bad.toml:22: services.alpha.policy: policy 'frugal' needs the option 'share'",
        "bad.toml:23: services.alpha.policy_options.shares: policy 'frugal' takes no option 'shares'; did you mean "
        "'share'?",
        "bad.toml:24: services.alpha.checkpoint: policy 'frugal' takes no checkpoint",
        "bad.toml:27: market.options.prizes: mechanism 'lottery' takes no option 'prizes'; choose from tickets",
    ]
