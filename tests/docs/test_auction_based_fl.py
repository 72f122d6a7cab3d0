"""The market of docs/auction-based-fl.md, played by the page's own commands: second prices, owner by owner."""

import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from support import shell
from support.pages import ROOT, blocks, commands

PAGE = (ROOT / "docs/auction-based-fl.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page's files, in which its commands were typed, with two seeds."""
    place = tmp_path_factory.mktemp("owners")
    for text in blocks(PAGE, "toml", "python"):
        (place / text.split()[1]).write_text(text)
    for words in commands(PAGE):
        short = shlex.split(shlex.join(words).replace("--seeds 5", "--seeds 2 --jobs 1 --quiet"))
        done = shell.flmarket(*short[1:], cwd=place)
        assert done.returncode == 0, done.stderr
        if "report" in words:
            assert "| as-configured: per-image | 2 (no interval) | 5700 | 19.95 |" in done.stdout
    return place


def test_an_owner_is_the_same_to_all_and_is_sold_once_at_the_second_price(folder: Path) -> None:
    for path in folder.glob("runs/owners-*/*/*/offers.csv"):
        offers = pd.read_csv(path)
        assert offers[["client", "data_size"]].drop_duplicates()["client"].is_unique
        for _, auction in offers.groupby(["round", "client"]):
            won = auction["outcome"] == "served"
            [winner] = auction[won].itertuples()
            assert winner.paid == np.nanmax([winner.bid, auction["payment"][~won].max()])
            assert winner.payment == auction["payment"].max()
        images = offers[offers["outcome"] == "served"].groupby("service")["data_size"].sum()
        assert images.to_dict() == {"alpha": 5_700, "beta": 6_600, "gamma": 9_900}
        assert (offers.groupby("service")["paid"].sum() <= 20).all()
    by_hand = offers[(offers["data_size"] == 200) & (offers["service"] == "alpha")].iloc[0]
    assert (by_hand["bid"], by_hand["payment"], by_hand["paid"]) == (0.4, 0.8, 0.7)


def test_owners_hired_for_four_rounds_serve_in_each_at_the_same_price(folder: Path) -> None:
    for path in folder.glob("hired/owners-*/*/*/offers.csv"):
        offers = pd.read_csv(path)
        served = offers[offers["outcome"] == "served"].set_index(["round", "service", "client"])["paid"]
        first = served.loc[1]
        assert set(first.index.get_level_values("service")) == {"alpha", "beta", "gamma"}
        assert (first.groupby("service").sum() <= 20 / 4).all()
        for number in (2, 3, 4):
            assert served.loc[number].reindex(first.index).equals(first)
