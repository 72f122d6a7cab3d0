"""A scenario chooses its market's mechanism, by name; mechanisms are plug-ins."""

from pathlib import Path

import pandas as pd
import pytest

from des.allocation import allocate
from des.mechanism import MECHANISMS, Clearing, Mechanism
from scenarios.loader import dumps, load, parse
from support.runs import played
from support.scenarios import problems


class Discount(Mechanism):
    """The paper's winners, who pay a share of what they offered above the bid."""

    def __init__(self, share: float = 0.5) -> None:
        if not 0 <= share <= 1:
            raise ValueError(f"share must be 0 to 1, not {share}")
        self.share = share

    def clear(self, book):
        core = allocate(book.services, book.clients, book.payments, book.cores, book.tie_order)
        return Clearing(core, book.bids + ((book.payments - book.bids) * self.share).astype("int64"))


@pytest.fixture
def discount(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(MECHANISMS, "_registered", {})
    MECHANISMS.register("discount", Discount)
    return "discount"


def test_the_papers_mechanism_is_the_default_and_leaves_the_hash_as_it_is(two_services: str) -> None:
    said = parse(two_services + '\n[market]\nmechanism = "pay-as-offered"\n')
    assert said == parse(two_services)


def test_a_mechanism_of_another_name_is_written_down(two_services: str, discount: str) -> None:
    text = two_services + '\n[market]\nmechanism = "discount"\noptions = { share = 0.25 }\n'
    scenario = parse(text)
    assert '[market]\nmechanism = "discount"' in dumps(scenario)
    assert parse(dumps(scenario)) == scenario


@pytest.mark.parametrize(
    ("table", "line", "problem"),
    [
        (['mechanism = "pay-as-offerd"'], 3, "mechanism: unknown mechanism 'pay-as-offerd'; did you mean "),
        (['mechanism = "discount"', "options = { shares = 1 }"], 4, "options.shares: mechanism 'discount' takes no "),
        (['mechanism = "iterated"', "options = { steps = true }"], 4, "options.steps: mechanism 'iterated': steps "),
        (['mechanism = "vcg"', "options = { side = 1 }"], 4, "options.side: mechanism 'vcg': side must be clients or "),
        (['mechanism = "vcg"', "options = { side = nan }"], 4, "options: must hold finite numbers only"),
    ],
)
def test_a_mistake_is_one_problem_at_its_line(
    two_services: str, discount: str, table: list[str], line: int, problem: str
) -> None:
    [found] = problems("\n".join([two_services, "[market]", *table]))
    assert found.startswith(f"f:{len(two_services.splitlines()) + line}: market.{problem}")


def test_a_run_with_another_mechanism_pays_its_prices(tmp_path: Path, discount: str) -> None:
    """Money in the logs is the mechanism's: less is spent than under the paper's, and the winners are the same."""
    spent = {}
    for name in ("pay-as-offered", discount):
        base = ["rounds=6", "training.backend=surrogate", f"market.mechanism={name}"]
        scenario = load("scarce", base)
        run = played(scenario, tmp_path, "pacing")
        spent[name] = pd.read_csv(run.path / "rounds.csv").groupby("round")["spent"].sum()
    assert spent[discount].iloc[0] <= spent["pay-as-offered"].iloc[0]
    assert spent[discount].sum() < spent["pay-as-offered"].sum()
