"""Figures on pages that follow from something in the repository are what that says."""

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from fl.arrays import FloatArray
from fl.data.dqi import PUBLISHED, DQIParameters, dqi
from fl.surrogate.fitted import dqi_fit
from scenarios.logs.columns import ALL_TABLES

ROOT = Path(__file__).parents[2]


def test_the_speed_ups_in_the_readme_were_measured_on_one_machine() -> None:
    rows = re.findall(r"^\| (\S+) \|.*\| ([\d.]+)x \|$", (ROOT / "README.md").read_text(), re.M)
    assert [name for name, _ in rows] == ["Flower", "pfl-research", "FedLab", "BlazeFL"]
    sections = re.split(r"^### ", (ROOT / "docs/measurements.md").read_text(), flags=re.M)
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


def shown(tutorial: str) -> list[list[float]]:
    """Return the estimates in the rows of a tutorial's last table with intervals."""
    rows = re.findall(r"^\| (?:`|[\w-]+ \|).*\[[+-]?\d.*$", (ROOT / f"docs/tutorials/{tutorial}.md").read_text(), re.M)
    return [[float(it) for it in re.findall(r"(?<=\| )([+-]?[\d.]+)(?= [|\[])", row)] for row in rows]


def says(tutorial: str, words: str) -> bool:
    return words in " ".join((ROOT / f"docs/tutorials/{tutorial}.md").read_text().split())


SVG = "{http://www.w3.org/2000/svg}"


def drawn(tutorial: str, axis: str, lines: str) -> list[list[FloatArray]]:
    """Return the numbers along an axis of all lines in each panel of a tutorial's figure, which its program drew."""
    comments = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))  # noqa: S314 - our figure
    figure = ElementTree.parse(ROOT / f"docs/tutorials/{tutorial}.svg", comments)  # noqa: S314
    panels, ticks = [], []
    for panel in (group for group in figure.iter(f"{SVG}g") if group.get("id", "").startswith("axes_")):
        labelled = []
        for tick in (group for group in panel.iter(f"{SVG}g") if group.get("id", "").startswith(f"{axis}tick_")):
            place = float(next(tick.iter(f"{SVG}use")).get(axis))
            labelled += [(place, float(label.text)) for label in tick.iter(ElementTree.Comment)]
        ticks = labelled or ticks  # panels that share an axis have its labels in the first one
        (start, least), *_, (end, most) = ticks
        paths = [next(group.iter(f"{SVG}path")).get("d") for group in panel if group.get("id", "").startswith(lines)]
        points = [np.array(re.findall(r"[ML] ([\d.]+) ([\d.]+)", path), dtype=float) for path in paths]
        places = [along[:, "xy".index(axis)] for along in points]
        panels.append([least + (most - least) * (place - start) / (end - start) for place in places])
    return panels


def test_the_answer_on_adaptive_clients_is_that_of_its_figure() -> None:
    panels = drawn("interests", "y", "line2d_")
    ends = "{:.0f}, {:.0f} and {:.0f} %".format(*(adaptive[-1] for adaptive, _ in panels))
    assert says("interests", f"the lines still rise at the end ({ends})")
    first = max((adaptive - random)[:5].mean() for adaptive, random in panels)  # of ten rounds each
    assert says("interests", f"at most {first:.1f} in the first fifty")


def test_the_table_on_pacing_is_that_of_its_figure() -> None:
    for row, (greedy, paced) in zip(shown("changing"), drawn("changing", "y", "line2d_"), strict=True):
        gained = paced - greedy
        last, last_ten, _, mean = row
        assert [gained[-1], gained[-10:].mean(), gained.mean()] == pytest.approx([last, last_ten, mean], abs=0.006)


def test_the_table_on_mechanisms_is_that_of_its_figure() -> None:
    [intervals] = drawn("mechanisms", "x", "LineCollection_")
    middles = [interval.mean() for interval in reversed(intervals)]
    assert middles == pytest.approx([row[1] for row in shown("mechanisms")], abs=0.051)


def test_the_answer_on_waiting_is_that_of_its_table() -> None:
    text = (ROOT / "docs/tutorials/waiting.md").read_text()
    rows = re.findall(r"^\| (wait-for-all|first 4) \| (\w+) \| (.+) \| (\d+) .*\| (\d+) \| (\d+) \|$", text, re.M)
    (
        (_, _, some, cheap, *_),
        *_,
    ) = (row for row in rows if row[1] == "waits")
    (_, _, more, dear, *_) = next(row for row in rows if row[:2] == ("first 4", "waits"))
    assert "(3 of 20)" in some
    assert "(9 of 20)" in more
    assert int(dear) / int(cheap) == pytest.approx(1.78, abs=0.01)  # 78 % more
    offers, shares = np.array([[float(it) for it in row[4:]] for row in rows]).T
    assert (offers * shares).sum() / offers.sum() == pytest.approx(20, abs=2)  # one of five


def test_the_answer_on_adaptive_clients_is_that_of_its_table() -> None:
    eight, sixteen, many = (shown("interests")[at : at + 3] for at in (0, 3, 6))
    shares = [rows[1][1] for rows in (eight, sixteen, many)]
    assert np.abs(np.subtract(shares, [28, 24, 23])).max() <= 0.51
    assert says("interests", "28, 24 and 23 % with 8, 16 and 32 clients")
    learned = [round(rows[1][1] - rows[2][1]) for rows in (eight, sixteen, many)]
    assert says("interests", "Learning adds {}, {} and {} points".format(*learned))
    for rows, words in (
        (eight, "spend {} % more and get {} % fewer jobs"),
        (many, "spend {} % more and get {} % fewer."),
    ):
        more, fewer = (round(100 * abs(rows[1][at] / rows[0][at] - 1)) for at in (2, 3))
        assert says("interests", words.format(more, fewer))


def test_the_answer_on_pacing_is_that_of_its_table() -> None:
    rows = np.array(shown("changing"))
    last, _, best, mean = rows.T
    assert says("changing", f"by {last.min():.1f} to {last.max():.1f} points")
    assert says("changing", f"pacing costs up to {0.001 - mean.min():.1f} points")
    share = 100 * best / last
    assert says("changing", f"the gain is {share.min():.0f} to {share.max():.0f} % of that")


def test_the_answer_on_mechanisms_is_that_of_its_table() -> None:
    rows = np.array(shown("mechanisms"))
    learned, served, accuracy = rows[:, 1], rows[:, 2], rows[:, 3]
    gains, losses = learned[learned > 0], -learned[learned < 0]
    words = f"Learning adds {gains.min():.0f} to {gains.max():.0f} points under the two rules whose prices follow bids"
    assert says("mechanisms", f"{words}, and takes {losses.min():.1f} to {losses.max():.1f}".replace(" 0.", " ."))
    assert says("mechanisms", f"Budgets then buy {-served.min():.2f} fewer".replace(" 0.", " ."))
    assert says("mechanisms", f"accuracy**: {-accuracy.max():.2f} to {-accuracy.min():.2f}".replace(" 0.", " ."))


def test_the_record_counts_the_cells_that_the_audit_changes() -> None:
    """One in each column but those named service, and the sums that verify derives; without responses and models."""
    cells = sum(len(it.columns) - 1 for name, it in ALL_TABLES.items() if name not in ("responses", "models"))
    cells -= sum(column.rule == "totals" for column in ALL_TABLES["rounds"].columns)
    assert f"{cells} changed cells" in (ROOT / "research/notebook/attacks.md").read_text()
