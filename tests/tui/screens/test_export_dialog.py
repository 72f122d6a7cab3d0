"""What the export dialog writes: tables as CSV, and pictures of the screen."""

import csv
import re
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.widgets import Input

from support.screens import until, watching
from tui.app import MarketApp
from tui.screens.export_dialog import write_csv
from tui.state.watched_run import Session

Play = Callable[..., Session]


@pytest.mark.slow
async def test_export_writes_csv_and_pictures(app: MarketApp, play_small: Play, tmp_path: Path) -> None:
    import pandas as pd

    async with watching(app, play_small()) as (pilot, _):
        for kind, rows in (("rounds", 36), ("offers", None), ("events", None)):
            await pilot.press("x")
            app.screen.query_one("#kind").value = kind  # type: ignore[attr-defined]
            await pilot.pause()
            path = app.screen.query_one("#path", Input)
            assert path.value == f"small-as-configured-seed1-{kind}.csv"
            path.value = str(tmp_path / path.value)
            await pilot.press("enter")
            table = pd.read_csv(path.value)
            assert list(table.columns[:3]) == ["scenario", "policy", "seed"]
            assert len(table) == (rows or len(table)) > 0
        await pilot.press("x")
        app.screen.query_one("#kind").value = "svg"  # type: ignore[attr-defined]
        await pilot.pause()
        target = tmp_path / "picture.svg"
        app.screen.query_one("#path", Input).value = str(target)
        await pilot.press("enter")
        await until(pilot, target.exists, "the picture")
        assert target.read_text().startswith("<svg")
        await pilot.press("x")
        app.screen.query_one("#path", Input).value = str(tmp_path / "no" / "such" / "folder.csv")
        await pilot.press("enter")
        assert "cannot be written" in str(app.screen.query_one(".problem").render())


@pytest.mark.parametrize("maximised", [False, True])
async def test_a_picture_of_the_panel_that_has_the_focus_shows_nothing_else(
    app: MarketApp, play_small: Play, tmp_path: Path, maximised: bool
) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        await pilot.press("4", *["m"] * maximised, "x")
        app.screen.query_one("#kind").value = "svg-part"  # type: ignore[attr-defined]
        await pilot.pause()
        path = app.screen.query_one("#path", Input)
        assert path.value == "small-as-configured-seed1-order-book.svg"
        path.value = str(tmp_path / path.value)
        await pilot.press("enter")
        await until(pilot, Path(path.value).exists, "the picture")
        size = screen.panels.all[3].region.size
    lines = re.findall(r'clip-path="url\(#terminal-\d+-line-(\d+)\)">([^<]*)<', Path(path.value).read_text())
    shown = ["".join(text for place, text in lines if int(place) == row) for row in range(size.height)]
    assert "4&#160;Order&#160;book" in shown[0]
    assert (shown[0][0], shown[-1].strip()[-1]) == ("╭", "╯")
    assert {int(place) for place, _ in lines} == set(range(size.height))
    assert "Services" not in "".join(shown)


def test_csv_has_the_columns_of_a_sweep_and_of_groups(play_small: Play, scenario_text: str, tmp_path: Path) -> None:
    groups = '[[clients.groups]]\nname = "servers"\ncount = 8\n\n'
    session = play_small(scenario_text.replace("# The first.", groups))
    session.sweep = {"clients.cores": 1, "clients.emd": [0.2, 0.8]}
    write_csv(session, "offers", tmp_path / "offers.csv")
    header, first, *_ = csv.reader((tmp_path / "offers.csv").read_text().splitlines())
    assert header[:8] == ["scenario", "policy", "seed", "clients.cores", "clients.emd", "round", "service", "client"]
    assert first[:6] == ["small-00000000", "as-configured", "1", "1", "[0.2, 0.8]", "1"]
    assert (header[8], first[8]) == ("group", "servers")


@pytest.mark.slow
async def test_export_writes_a_picture_as_png(app: MarketApp, play_small: Play, tmp_path: Path) -> None:
    pytest.importorskip("resvg_py", reason="PNG needs the extra `png`: resvg-py is not installed")
    size, target = (160, 48), tmp_path / "picture.png"
    async with watching(app, play_small(), size) as (pilot, _):
        await pilot.press("x")
        app.screen.query_one("#kind").value = "png"  # type: ignore[attr-defined]
        await pilot.pause()
        assert app.screen.query_one("#path", Input).value == "small-as-configured-seed1.png"
        app.screen.query_one("#path", Input).value = str(target)
        await pilot.press("enter")
        await until(pilot, target.exists, "the picture")
    picture = target.read_bytes()
    assert picture[:16] == b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
    width, height = struct.unpack(">II", picture[16:24])
    # A cell is about 12 by 24 pixels, and the picture has a frame.
    assert 12 * size[0] <= width <= 14 * size[0]
    assert 24 * size[1] <= height <= 28 * size[1]
    assert len(picture) > 100_000  # without its text, for want of a font, it would be an eighth of that
    assert picture.endswith(b"IEND\xaeB`\x82")
