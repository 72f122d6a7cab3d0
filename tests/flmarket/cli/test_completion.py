"""The shell's completion of what is named on the command line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


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
def test_what_is_named_is_completed(words: str, found: set[str], tmp_path: Path) -> None:
    (tmp_path / "market.toml").touch()
    words, found = words.format(here=tmp_path), {word.format(here=tmp_path) for word in found}
    asked = {"_FLMARKET_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    command = [str(Path(sys.executable).with_name("flmarket"))]
    done = subprocess.run(
        command, env={**os.environ, **asked}, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert found <= {*done.stdout.split()}, done.stderr
    assert all(word.startswith(words.split()[-1]) for word in done.stdout.split())
