"""When two definitions of one class are the same, and when that cannot be told."""

import importlib
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fl.definition import UnknowableError, digest
from fl.installation import ROOT

TEXT = """
import numpy as np
from dataclasses import dataclass
from functools import cached_property
from enum import Enum

STEP = 1
LIMITS = {"low": [1, 2], "high": {3, 4}}

class Side(Enum):
    LEFT = 1

def helper(x):
    return x * STEP

class Base:
    def act(self):
        return 10

@dataclass
class Options:
    rate: float = 0.5

def make(markup):
    class Own(Base):
        weights = [1.0, 2.0]
        array = np.array([1.0, 2.0])
        options = Options()
        def act(self):
            return [helper(x) for x in LIMITS["low"]] + [markup, super().act(), Side.LEFT]
        @property
        def half(self):
            return 0.25
        @staticmethod
        def third():
            return "third"
    return Own

Own = make(0.1)
"""


def of(text: str) -> str:
    """The digest of the class that a script defines; a prompt's has no source text either."""
    scope: dict[str, object] = {"__name__": "__main__"}
    exec(text, scope)  # noqa: S102 - as a prompt does
    return digest(scope["Own"])


def test_the_same_text_makes_the_same_definition_in_every_process() -> None:
    def printed(text: str, seed: str) -> str:
        code = f"{text}\nfrom fl.definition import digest\nprint(digest(Own))"
        environment = {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed}
        return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True).stdout

    assert len(printed(TEXT, "7")) == 65
    assert printed(TEXT, "7") == printed("# a comment" + TEXT, "8")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("make(0.1)", "make(0.9)"),
        ("return 10", "return 11"),
        ("STEP = 1", "STEP = 2"),
        ("x * STEP", "x + STEP"),
        ('"low": [1, 2]', '"low": [1, 3]'),
        ("{3, 4}", "{3, 5}"),
        ("weights = [1.0, 2.0]", "weights = [1.0, 2.5]"),
        ("np.array([1.0, 2.0])", "np.array([1.0, 2.5])"),
        ("Options()", "Options(0.75)"),
        ("LEFT = 1", "LEFT = 2"),
        ("0.25", "0.5"),
        ('"third"', '"fourth"'),
    ],
)
def test_whatever_it_uses_is_part_of_it(old: str, new: str) -> None:
    assert old in TEXT
    assert of(TEXT.replace(old, new, 1)) != of(TEXT)


def test_a_module_of_the_users_own_that_it_uses_is_part_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "helpers_of_mine.py").write_text("def one():\n    return 1\n")
    text = "import helpers_of_mine\nclass Own:\n    def act(self):\n        return helpers_of_mine.one()\n"
    before = of(text)
    importlib.import_module("helpers_of_mine").one = lambda: 2
    assert of(text) != before


@pytest.mark.parametrize("value", [threading.Lock(), object(), open])
def test_what_cannot_be_told(value: object) -> None:
    own = type("Own", (), {"__module__": "__main__", "value": value})
    if value is open:
        assert digest(own) == digest(type("Own", (), {"__module__": "__main__", "value": value}))
        return
    with pytest.raises(UnknowableError):
        digest(own)
