"""What is taken out of the app: tables as CSV, pictures of the screen, and recordings of a replay."""

import csv
import json
import re
import struct
from pathlib import Path

import pytest
from textual.widgets import Input

from flmarket.core.errors import InputError
from scenarios.loader import parse
from support.runs import played
from support.screens import Play, rendered, until, watching
from tui.app import MarketApp
from tui.recording import SIZE, record
from tui.screens.export_dialog import write_csv


@pytest.mark.slow
async def test_export_writes_csv_and_pictures(app: MarketApp, play_small: Play, tmp_path: Path) -> None:
    import pandas as pd

    async with watching(app, play_small()) as (pilot, _):
        for kind, rows in (("rounds", 36), ("offers", None), ("events", None)):
            await pilot.press("x")
            app.screen.query_one("#kind").value = kind
            await pilot.pause()
            path = app.screen.query_one("#path", Input)
            assert path.value == f"small-as-configured-seed1-{kind}.csv"
            path.value = str(tmp_path / path.value)
            await pilot.press("enter")
            table = pd.read_csv(path.value)
            assert list(table.columns[:3]) == ["scenario", "policy", "seed"]
            assert len(table) == (rows or len(table)) > 0
        await pilot.press("x")
        app.screen.query_one("#kind").value = "svg"
        await pilot.pause()
        target = tmp_path / "picture.svg"
        app.screen.query_one("#path", Input).value = str(target)
        await pilot.press("enter")
        await until(pilot, target.exists, "the picture")
        assert target.read_text().startswith("<svg")
        await pilot.press("x")
        app.screen.query_one("#path", Input).value = str(tmp_path / "no" / "such" / "folder.csv")
        await pilot.press("enter")
        assert "cannot be written" in rendered(app.screen, ".problem")


@pytest.mark.slow
async def test_a_picture_of_the_focused_panel_shows_nothing_else(
    app: MarketApp, play_small: Play, tmp_path: Path
) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        for maximised in (False, True):
            await pilot.press("4", *["m"] * maximised, "x")
            app.screen.query_one("#kind").value = "svg-part"
            await pilot.pause()
            path = app.screen.query_one("#path", Input)
            assert path.value == "small-as-configured-seed1-order-book.svg"
            file = tmp_path / f"{maximised}.svg"
            path.value = str(file)
            await pilot.press("enter")
            await until(pilot, file.exists, "the picture")
            size = screen.panels.all[3].region.size
            lines = re.findall(r'clip-path="url\(#terminal-\d+-line-(\d+)\)">([^<]*)<', file.read_text())
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
        app.screen.query_one("#kind").value = "png"
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


def test_every_round_is_drawn_at_its_time(two_services: str, tmp_path: Path) -> None:
    run, file = played(parse(two_services), tmp_path), tmp_path / "clip.cast"
    rounds = record(run.path, file)
    head, *drawings = (json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())
    assert (head["version"], head["width"], head["height"]) == (2, *SIZE)
    assert all(kind == "o" for _, kind, _ in drawings)
    times = [at for at, _, _ in drawings]
    assert times == sorted(times)
    assert len(set(times)) == rounds + 1  # the rounds, and the end
    assert (drawings[0][2], drawings[-1][2][-6:]) == ("\x1b[?25l", "\x1b[?25h")  # the cursor is there again at the end
    assert any("38;2;" in drawn for _, _, drawn in drawings)  # in full colour, whatever terminal it is made in


def test_a_recording_may_begin_with_a_later_round(two_services: str, tmp_path: Path) -> None:
    run, file = played(parse(two_services), tmp_path), tmp_path / "clip.cast"
    assert record(run.path, file, first=3) == 2
    first = "".join(drawn for at, _, drawn in map(json.loads, file.read_text().splitlines()[1:]) if at == 0)
    assert "round 3/4" in first


@pytest.mark.slow
def test_a_run_without_a_round_is_refused(two_services: str, tmp_path: Path) -> None:
    run = tmp_path / "market-00000000" / "as-configured" / "seed-0000"
    run.mkdir(parents=True)
    (run / "scenario.toml").write_text(two_services, encoding="utf-8")
    with pytest.raises(InputError, match="no round was played"):
        record(run, tmp_path / "clip.cast")


def test_a_run_that_is_being_played_is_refused_at_once(two_services: str, tmp_path: Path) -> None:
    run = played(parse(two_services), tmp_path)
    with run.locked(), pytest.raises(InputError, match="is being played; record it once it is over"):
        record(run.path, tmp_path / "clip.cast")
