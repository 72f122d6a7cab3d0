"""Messages in the words of whoever reads them: the shell's options, or the parameters of Python's functions."""

import pytest

from flmarket.core.errors import InputError
from flmarket.core.words import in_python, pythonic
from scenarios.file.problems import Problem, ScenarioError


@pytest.mark.parametrize(
    ("shell", "python"),
    [
        ("--baseline x: no run has that policy", "baseline='x': no run has that policy"),
        ("--policy mahdrl:a.st: takes no checkpoint", "policies='mahdrl:a.st': takes no checkpoint"),
        ("--policy mahdrl:: the path must follow", "policies='mahdrl:': the path must follow"),
        ("--rounds 0: must be at least 1", "rounds=0: must be at least 1"),
        ("choose another --out, or run again with --fresh", "choose another out=, or run again with fresh=True"),
        ("run again with --fresh-changed to start over", "run again with fresh_changed=True to start over"),
        ("continue with --resume, or choose another --out", "continue with resume=True, or choose another out="),
        ("--out '': must name a file", "out='': must name a file"),
        ("load it with --plugin FILE", "load it with flmarket.load_plugin(FILE)"),
        ("(--plugin FILE loads your own)", "(flmarket.load_plugin(FILE) loads your own)"),
        ("--engine ray needs Ray", "engine='ray' needs Ray"),
        ("--ray-address h:1: cannot be reached", "ray_address='h:1': cannot be reached"),
        ("train on one point of it, with --set", "train on one point of it, with load's overrides"),
        ("--option replay=9: does not fit", "options['replay']=9: does not fit"),
        ("--together 3: only 2 services learn", "together=3: only 2 services learn"),
        ("runs/my--out/x: is damaged; --freshly", "runs/my--out/x: is damaged; --freshly"),
    ],
)
def test_options_become_parameters(shell: str, python: str) -> None:
    assert pythonic(shell) == python


def test_every_error_is_reworded_on_its_way_to_python() -> None:
    @in_python()
    def refuse(error: Exception) -> None:
        raise error

    with pytest.raises(InputError) as caught:
        refuse(InputError("run again with --fresh"))
    assert str(caught.value) == "run again with fresh=True"
    with pytest.raises(ScenarioError) as problems:
        refuse(ScenarioError([Problem("--policy x", None, "", "unknown (--plugin FILE loads your own)")]))
    assert str(problems.value) == "policies='x': unknown (flmarket.load_plugin(FILE) loads your own)"
    with pytest.raises(ValueError, match=r"^--fresh$"):
        refuse(ValueError("--fresh"))
