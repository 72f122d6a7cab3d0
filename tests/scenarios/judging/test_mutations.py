"""Single changes to a run's tables, with a meta.json that was made to fit: `flmarket verify` finds them.

`benchmarks/verify_mutations.py` makes more of them, of more runs, and prints the table of docs/reliability.md.
"""

import importlib
from pathlib import Path
from typing import Any

import pytest

from scenarios.build import Shelf
from scenarios.loader import load
from scenarios.logs.columns import TABLES
from scenarios.running.planning import plan
from scenarios.running.runner import execute

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def script() -> Any:
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(ROOT / "benchmarks")
        return importlib.import_module("verify_mutations")


@pytest.fixture(scope="module")
def mutator(script: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Of a run with everything in it: offers that are outbid, missed deadlines, clients that leave, and secrets."""
    overrides = ["rounds=4", "training.backend=surrogate", "timeline.deadline=8", "clients.departure_rate=0.2"]
    secrets = ["clients.cost.noise=0.3", "market.bids=own", "market.dqi=rank", "market.dqi_noise=0.1"]
    [run] = plan([load("scarce", [*overrides, *secrets])], ["random"], [0], tmp_path_factory.mktemp("runs"), Shelf())
    execute(run, Shelf())
    assert not script.is_found(run.directory.path)
    return script.Mutator(run.directory.path, 0)


def test_every_change_of_a_cell_is_found(mutator: Any) -> None:
    outcomes = [it for table, label, rows in mutator.columns() for it in mutator.change_cells(table, label, rows, 3)]
    assert [change for change, found in outcomes if not found] == []
    assert len(outcomes) > 100


def test_every_change_of_rows_is_found_but_one_that_only_the_policy_knows(script: Any, mutator: Any) -> None:
    for table in TABLES:
        for how in script.ROW_CHANGES[table]:
            outcomes = list(mutator.change_rows(table, how, 3))
            wanted = how != script.FREE
            assert [change for change, found in outcomes if found != wanted] == []
            assert outcomes
