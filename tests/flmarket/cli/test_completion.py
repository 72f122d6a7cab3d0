"""The shell's completion of what is named on the command line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.shell import flmarket


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("flmarket run qu", {"quickstart"}),
        ("flmarket run ma", {"market.toml"}),
        ("flmarket run {here}/ma", {"{here}/market.toml"}),
        ("flmarket run paper --policy hq", {"hqfa"}),
        ("flmarket league paper --policy hq", {"hqfa"}),
        ("flmarket suite hq", {"hqfa"}),
        ("flmarket certify unif", {"uniform-price"}),
        ("flmarket train pa", {"paper"}),
        ("flmarket run paper --set clients.co", {"clients.count=", "clients.cores="}),
        ("flmarket run paper --set services.*.bud", {"services.*.budget="}),
        ("flmarket run paper market.toml --set services.fashion-mnist.b", {"services.fashion-mnist.budget="}),
        ("flmarket run paper --set market.mechanism=uni", {"market.mechanism=uniform-price"}),
        ("flmarket calibrate dqi paper --set training.backend=s", {"training.backend=surrogate"}),
    ],
)
def test_what_is_named_is_completed(
    words: str, found: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "__package__", "")  # as of a script, whose name the shell asks
    (tmp_path / "market.toml").touch()
    words, found = words.format(here=tmp_path), {word.format(here=tmp_path) for word in found}
    done = flmarket(cwd=tmp_path, env=asked(words))
    assert found <= {*done.stdout.split()}, done.stderr
    assert all(word.startswith(words.split()[-1]) for word in done.stdout.split())


def asked(words: str) -> dict[str, str]:
    """Return what Bash puts into the environment of a command that completes its last word."""
    return {"_FLMARKET_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}


def test_bash_gets_the_words_from_the_installed_command() -> None:
    command, environment = Path(sys.executable).with_name("flmarket"), os.environ | asked("flmarket run qu")
    assert subprocess.run([command], env=environment, capture_output=True, text=True).stdout.split() == ["quickstart"]
