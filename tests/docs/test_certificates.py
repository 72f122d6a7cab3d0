"""The witnesses in docs/mechanisms/certificates are scenarios that play what their first lines say."""

import re
from pathlib import Path

import pytest

from des.money import text
from learning.play import play_round
from scenarios.build import Shelf, build
from scenarios.loader import load, points

FOLDER = Path(__file__).parents[2] / "docs/mechanisms/certificates"
WITNESSES = sorted(FOLDER.rglob("*.toml"))


def test_there_are_witnesses() -> None:
    assert len(WITNESSES) >= 8


@pytest.mark.parametrize("path", WITNESSES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_a_witness_plays_what_it_says(path: Path) -> None:
    lines = path.read_text().splitlines()
    [seed] = [
        int(found[1])
        for line in lines
        if (found := re.fullmatch(rf"#     flmarket run {path.name} --seed (\d+)", line))
    ]
    said = [line for line in lines if re.match(r"#   service-\d+ offers client|# (truth|misreport):", line)]
    played = []
    for name, point in zip(("truth", "misreport"), points(load(path)), strict=True):
        setup = build(point.scenario, seed, Shelf())
        report = play_round(setup.market, setup.policies)
        setup.market.close()
        served = [offer for offer in report.offers if offer.paid is not None]
        played.append(f"# {name}:")
        played += [
            f"#   {offer.service} offers client {offer.client} {text(offer.payment)} and pays {text(offer.paid)}"
            for offer in sorted(served, key=lambda offer: (offer.service, offer.client))
        ]
    assert played == said
