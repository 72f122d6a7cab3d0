"""Whose parameters of eq. (6) a scenario has: ``dqi``."""

from pathlib import Path

import pytest

from flmarket.analysis.verification.verify import verify
from flmarket.core.errors import InputError
from scenarios.loader import load
from support.runs import change, played, table


def test_a_market_with_the_parameters_of_jiao_is_played_and_verified_and_a_false_dqi_is_found(tmp_path: Path) -> None:
    small = ["dqi=jiao", "training.backend=surrogate", "rounds=2", "clients.data_size=[100]", "clients.emd=[0.4]"]
    run = played(load("paper", small), tmp_path)
    assert {row["dqi"] for row in table(run.path, "offers")} == {"0.648290365216"}  # as in fl/data/test_dqi.py
    assert {name: of["from"] for name, of in run.meta()["dqi"].items()} == dict.fromkeys(run.meta()["labels"], "jiao")
    assert verify(run).problems == []
    change(run.path, "offers", {"dqi": "0.684381662"})  # with the published ones
    assert any("dqi" in problem for problem in verify(run).problems)


def test_parameters_that_nobody_has_are_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match="dqi=cheng: must be 'published', 'fitted' or 'jiao', not "):
        load("paper", ["dqi=cheng"])
