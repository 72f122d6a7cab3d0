"""A plug-in that pays after delivery: played, verified, forged, and resumed to the same bytes."""

import re
from pathlib import Path

import pytest

from flmarket.analysis.verification.verify import verify
from scenarios.loader import load
from scenarios.plugin_files import load_plugin
from support.runs import change, played, table

PAGE = Path(__file__).parents[2] / "docs/extending/mechanism.md"
CHANGES = ["training.backend=surrogate", "rounds=4", "market.mechanism=on-delivery", "clients.departure_rate=0.3"]


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    [text] = re.findall(r"```python\n# on_delivery.py\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    (tmp_path / "on_delivery.py").write_text(text)
    load_plugin(tmp_path / "on_delivery.py")
    return tmp_path


def test_pay_after_delivery_is_verified_and_a_false_payment_is_found(plugin: Path) -> None:
    run = played(load("quickstart", [*CHANGES, "services.*.policy=worth"]), plugin / "runs")
    paid = [row for row in table(run.path, "offers") if row["outcome"] == "served"]
    assert any(row["paid"] == row["bid"] != row["payment"] for row in paid)
    assert any(row["paid"] == row["payment"] != row["bid"] for row in paid)
    assert verify(run).problems == []
    generous = next(row for row in paid if row["paid"] == row["bid"] != row["payment"])
    change(run.path, "offers", {"paid": generous["payment"]}, lambda row: row == generous)
    assert any("the mechanism gives it" in problem for problem in verify(run).problems)
