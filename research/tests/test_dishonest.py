"""Free riders and wrong labels: what research/results/dishonest.csv holds is what research/dishonest.py plays."""

from pathlib import Path

import dishonest
import pandas as pd
import pytest
from experiment import gain, plus_minus

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "research/results/dishonest.csv"


def test_every_run_is_there_once() -> None:
    runs = pd.read_csv(RESULTS, dtype=str)
    assert sorted(runs[list(dishonest.COLUMNS[:5])].itertuples(index=False, name=None)) == sorted(dishonest.tasks())


@pytest.mark.parametrize(
    "task", [("krum", "careless", "40", "pay-as-offered", "1"), ("fedavg", "riders", "20", "audit", "0")]
)
def test_a_line_of_the_file_can_be_played_again(task: tuple[str, ...]) -> None:
    lines = pd.read_csv(RESULTS, dtype=str).set_index(list(dishonest.COLUMNS[:5]))
    assert list(dishonest.play(*task)) == lines.loc[task].tolist()


def test_whoever_services_pay_as_offered_is_paid_alike_whether_it_works_or_not() -> None:
    runs = pd.read_csv(RESULTS)
    pay = runs[runs.mechanism == "pay-as-offered"].groupby("seed").paid
    assert (pay.max() == pay.min()).all()


def test_the_page_of_the_product_has_the_rows_of_forty_percent() -> None:
    cells = [row.strip("| ").split(" | ") for row in dishonest.paid(RESULTS).splitlines()]
    rows = [f"| {' | '.join(row[1:4] + row[5:])} |" for row in cells if row[0] == "40 %"]
    assert len(rows) == 3
    assert set(rows) <= set((ROOT / "docs/conduct.md").read_text().splitlines())


@pytest.mark.parametrize("share", [0, 20, 40])
def test_the_notebook_has_what_an_audit_changes(share: int) -> None:
    runs = pd.read_csv(RESULTS).query("rule == 'fedavg' and share == @share and group != 'careless'")
    text = " ".join((ROOT / "research/notebook/dishonest.md").read_text().split())
    for measure, shares in (("auc", (0, 40)), ("last", (20, 40))):
        found = runs.pivot_table(measure, "seed", "mechanism")
        change = plus_minus(gain(found, "audit", "pay-as-offered"), 3)
        assert (change[1:] in text) == (share in shares)
