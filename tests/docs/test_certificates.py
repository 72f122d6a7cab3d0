"""The witnesses in docs/mechanisms/certificates are scenarios that play what their first lines say."""

import re
from pathlib import Path

import numpy as np
import pytest

from des.money import text, to_micro
from learning.play_round import play_round
from scenarios.build import Shelf, build
from scenarios.loader import load, points

FOLDER = Path(__file__).parents[2] / "docs/mechanisms/certificates"
WITNESSES = sorted(FOLDER.rglob("*.toml"))


def test_there_are_witnesses() -> None:
    assert len(WITNESSES) >= 8


@pytest.mark.parametrize("path", WITNESSES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_a_witness_plays_what_it_says(path: Path) -> None:
    lines = path.read_text().splitlines()
    [said] = [line for line in lines if " of the round instead of " in line and line.startswith("#")]
    misreporting, truthful = re.findall(r"\d+\.\d{6}", said.rpartition(": it has ")[2])
    [seed] = [int(found[1]) for line in lines if (found := re.search(r"flmarket run .* --seed (\d+)", line))]
    service, client = re.match(r"# (?:service-(\d+)|client (\d+)) ", said).groups()
    amounts = [line.split()[2:] for line in lines if re.match(r"#   service-\d+  ", line)]
    values, costs = np.split(to_micro(np.array(amounts, dtype=float)), 2, axis=1)
    for point, expected in zip(points(load(path)), (truthful, misreporting), strict=True):
        setup = build(point.scenario, seed, Shelf())
        report = play_round(setup.market, setup.policies)
        setup.market.close()
        has = 0
        for offer in report.offers:
            m, c = int(offer.service.removeprefix("service-")) - 1, offer.client
            if offer.paid is not None and service == str(m + 1):
                has += values[m, c] - offer.paid
            if offer.paid is not None and client == str(c):
                has += offer.paid - costs[m, c]
        assert text(int(has)) == expected
