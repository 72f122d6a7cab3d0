"""Witnesses of ``flmarket certify``: what their first lines say, and what comes of them when they are played."""

import re
from pathlib import Path

import numpy as np

from certificates import said
from des.log_records import RoundReport
from des.money import text, to_micro
from learning.play_round import play
from scenarios.build import Shelf, build
from scenarios.loader import load, points


def said_and_played(path: Path) -> tuple[list[str], list[str]]:
    """Return what the party has of the truth and of its misreport, money: as the file says, and as it plays."""
    content = path.read_text(encoding="utf-8")
    lines = content.splitlines()
    who, misreporting, truthful = said(content)
    [seed] = [int(found[1]) for line in lines if (found := re.search(r"flmarket run .* --seed (\d+)", line))]
    service, client = re.match(r"(?:service-(\d+)|client (\d+)) ", who).groups()
    amounts = [line.split()[2:] for line in lines if re.match(r"#   service-\d+  ", line)]
    values, costs = np.split(to_micro(np.array(amounts, dtype=float)), 2, axis=1)
    played = []
    for point in points(load(path)):
        setup = build(point.scenario, seed, Shelf())
        reports: list[RoundReport] = []
        play(setup.market, setup.policies, [reports.append])
        setup.market.close()
        has = 0
        for offer in (it for report in reports for it in report.offers):
            m, c = int(offer.service.removeprefix("service-")) - 1, offer.client
            if offer.paid is not None and service == str(m + 1):
                has += values[m, c] - offer.paid
            if offer.paid is not None and client == str(c):
                has += offer.paid - costs[m, c]
        played.append(text(int(has)))
    return [truthful, misreporting], played
