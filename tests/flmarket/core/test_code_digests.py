"""Digests of definitions: another one for whatever could make a difference, and the same for the same."""

import sys
from abc import ABCMeta
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property, partial, partialmethod, singledispatchmethod
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pytest

from flmarket.core.code_digests import NoDigestError, digest, recorded

SHARE = 0.5
WEIGHTS = {"w": np.ones(3)}


def helped(x: float) -> float:
    return x * SHARE


def act(x: float) -> Any:
    return [helped(x * w) for w in WEIGHTS["w"]]


class Base:
    share = SHARE

    def value(self, x: float) -> float:
        return helped(x) * self.share


class Agent(Base):
    def __init__(self, weight: float) -> None:
        self.weight = weight

    def decide(self, x: float) -> float:
        return x * self.weight


def closure(weight: object) -> Callable[[], object]:
    return lambda: weight


def by_default(weight: object) -> Callable[[], object]:
    def found(weight: object = weight) -> object:
        return weight

    return found


def require_share_counts(thing: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that another ``SHARE`` gives another digest, and the same one the same."""
    before = digest(thing)
    assert digest(thing) == before
    monkeypatch.setitem(globals(), "SHARE", 0.6)
    assert digest(thing) != before


@pytest.mark.parametrize("thing", [act, Agent], ids=["function", "class"])
def test_what_is_used_from_around_counts_also_where_a_helper_or_a_base_class_uses_it(
    thing: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_share_counts(thing, monkeypatch)


@cache
def kept() -> float:
    return SHARE


class Odd:
    def __init__(self) -> None:
        self.weight = SHARE

    value = partialmethod(lambda self, share, x: x * share, 0.5)


class Cached:
    @cached_property
    def weight(self) -> float:
        return SHARE


class Single:
    @singledispatchmethod
    def weight(self, x: object) -> float:
        return SHARE


class Settable:
    @property
    def weight(self) -> float:
        return 1.0

    @weight.setter
    def weight(self, weight: float) -> None:
        self.kept = weight * SHARE


@pytest.mark.parametrize("thing", [kept, lambda: kept(), Odd, Cached, Single, Settable])
def test_what_is_used_counts_in_constructors_and_in_what_decorators_wrap(
    thing: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_share_counts(thing, monkeypatch)


def test_lambdas_that_share_a_line_differ() -> None:
    one, other = (lambda x: x + 1), (lambda x: x + 2)
    assert digest(closure(one)) == digest(closure(one)) != digest(closure(other))


def test_methods_that_a_class_is_given_later_count(monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest(Agent)
    monkeypatch.setattr(Base, "value", lambda self, x: x)
    given = digest(Agent)
    monkeypatch.setattr(Base, "value", lambda self, x: 2 * x)
    assert len({before, given, digest(Agent)}) == 3


def test_a_class_that_type_made_is_its_members() -> None:
    def made(share: float) -> type:
        return ABCMeta("Made", (Base,), {"share": share})  # it says that it is of the module abc

    assert digest(made(0.7)) == digest(made(0.7)) != digest(made(0.8))


@dataclass
class Settings:
    share: float = SHARE
    weights: list[float] = field(default_factory=list)


def test_what_python_writes_into_a_class_is_no_obstacle() -> None:
    assert digest(Settings) == digest(Settings)


def test_arrays_inside_of_an_inner_function_count(monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest(act)
    monkeypatch.setitem(WEIGHTS, "w", np.array([1.0, 1.0, 2.0]))
    assert digest(act) != before


@pytest.mark.parametrize(
    "make", [closure, by_default, lambda it: partial(act, it), lambda it: Agent(it).decide, lambda it: {"x": [it]}]
)
def test_what_a_function_holds_counts(make: Callable[[object], object]) -> None:
    assert digest(make(1.0)) == digest(make(1.0)) != digest(make(2.0))


@pytest.mark.parametrize("make", [set, frozenset, Agent])
def test_the_order_of_sets_which_differs_between_processes_does_not_count(make: Callable[[Any], object]) -> None:
    one, other = {0, 8}, {8, 0}
    assert list(one) != list(other)
    assert digest(make(one)) == digest(make(other)) != digest(make({0, 9}))


def test_which_things_are_the_same_counts_and_circles_end() -> None:
    first, second = Agent(1.0), Agent(2.0)
    assert digest(first, second, first) != digest(first, second, second)
    first.weight = first  # type: ignore[assignment]
    assert digest(first) == digest(first)


def test_networks_are_their_structure_and_their_tensors() -> None:
    torch = pytest.importorskip("torch")

    def network(last: type, seed: int = 0) -> Any:
        torch.manual_seed(seed)
        return torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2), last())

    def known(net: Any) -> str:
        return digest(closure(net))

    one = network(torch.nn.Tanh)
    assert known(one) == known(network(torch.nn.Tanh)) != known(network(torch.nn.ReLU))
    assert known(one) != known(network(torch.nn.Tanh, seed=1))
    before = known(one)
    one(torch.ones(3, 2))  # moves the running mean alone
    assert known(one) != before


def test_what_cannot_be_read_has_no_digest_and_says_why() -> None:
    with pytest.raises(NoDigestError, match="cannot pickle"):
        digest(closure(Lock()))
    for file in ("<stdin>", "<string>"):  # at a prompt, and of python -c
        typed: dict[str, Any] = {"__name__": "__main__"}
        exec(compile("def act(x): return x", file, "exec"), typed)  # noqa: S102 - as Python does
        with pytest.raises(NoDigestError, match="could not get source code"):
            digest(typed["act"])
        assert recorded(typed["act"], otherwise="once") == {
            "sha256": "once",
            "unreadable": "OSError: could not get source code",
        }


@pytest.mark.parametrize(
    "used",
    [
        "import helper\ndef act(): return helper.SHARE",
        "import helper as other\ndef act(): return other.SHARE",
        "def act():\n    import helper\n    return helper.SHARE",
        "def act():\n    from helper import SHARE\n    return SHARE",
        "import lab.shares\ndef act(): return lab.shares.helper.SHARE",
        "def act():\n    from lab.shares import helper\n    return helper.SHARE",
        "from importlib import import_module\ndef act(): return import_module('helper').SHARE",
        "import helper\nclass act:\n    def share(self): return helper.SHARE",
    ],
)
def test_the_text_of_modules_that_are_imported_counts_wherever_they_are(
    used: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / "__init__.py").write_text("")
    (tmp_path / "lab" / "shares.py").write_text("from . import other\nimport helper\n")
    (tmp_path / "lab" / "other.py").write_text("")
    (tmp_path / "helper.py").write_text("SHARE = 0.5\n")
    (tmp_path / "script.py").write_text(used)
    for name in ("script", "helper", "lab", "lab.shares", "lab.other"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    act = import_module("script").act
    before = digest(act)
    assert digest(act) == before
    for file in ("lab/other.py", "helper.py") if "lab" in used else ("helper.py",):
        (tmp_path / file).write_text("SHARE = 0.6\n")
        assert digest(act) != before
        before = digest(act)
    (tmp_path / "unused.py").write_text("SHARE = 0.6\n")
    assert digest(act) == before


def test_what_packages_define_is_their_name() -> None:
    assert digest(np.linalg.norm) == digest(np.linalg.norm) != digest(np.linalg.det)
    assert digest(int) == digest(int) != digest(float)
