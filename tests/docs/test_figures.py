"""Figures on pages that follow from something in the repository are what that says."""

import re
from pathlib import Path

import numpy as np
import pytest

from fl.data.dqi import PUBLISHED, DQIParameters, dqi
from fl.surrogate.fitted import dqi_fit

ROOT = Path(__file__).parents[2]


def test_the_speed_ups_in_the_readme_were_measured_on_one_machine() -> None:
    rows = re.findall(r"^\| (\S+) \|.*\| ([\d.]+)x \|$", (ROOT / "README.md").read_text(), re.M)
    assert [name for name, _ in rows] == ["Flower", "pfl-research", "FedLab", "BlazeFL"]
    sections = re.split(r"^### ", (ROOT / "docs/performance.md").read_text(), flags=re.M)
    [measured] = [
        found
        for text in sections
        if (found := re.findall(r"against (\S+?)(?: on Ray)?, by .* \| ([\d.]+) times \[", text))
        and dict(found).keys() >= dict(rows).keys()
    ]
    assert {name: float(f"{float(dict(measured)[name]):.2g}") for name, _ in rows} == {
        name: float(times) for name, times in rows
    }


@pytest.mark.parametrize(
    ("size", "emd", "text"),
    [(400, 0.6, "400\nimages at EMD .6 (.84)"), (100, 0.4, "100 images at EMD .4 (.78)")],
)
def test_dqi_by_the_fitted_parameters(size: int, emd: float, text: str) -> None:
    assert text in (ROOT / "docs/decisions/dqi.md").read_text()
    value = dqi(np.array([size]), np.array([emd]), DQIParameters(**dqi_fit("mnist").parameters)).item()
    assert f"{value:.2f}" == f"0{text[-4:-1]}"


def test_dqi_by_the_printed_parameters() -> None:
    assert "at D = 400 and EMD .4 its\nDQI is .67" in (ROOT / "docs/decisions/dqi.md").read_text()
    assert f"{dqi(np.array([400]), np.array([0.4]), PUBLISHED).item():.2f}" == "0.67"
