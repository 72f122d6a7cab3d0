"""Leaving clients out of a replayed training: what the full round comes to is what the log says."""

import importlib.util
from pathlib import Path

import pytest

import flmarket


def test_the_values_of_a_run(tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "examples" / "client_value.py"
    spec = importlib.util.spec_from_file_location("client_value", script)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    flmarket.run(flmarket.load("quickstart", {"rounds": 2}), "lcfa", out=tmp_path, progress=False)
    [run] = [path.parent for path in tmp_path.rglob("meta.json")]
    found = example.values(run, "digits", 2)
    assert set(found["round"]) == {1, 2}
    assert found.value.abs().max() > 0
    offers = flmarket.read(run).offers
    served = offers[(offers.service == "digits") & (offers.outcome == "served")]
    assert found.paid.sum() == pytest.approx(served.paid.sum())
