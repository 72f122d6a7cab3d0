"""Home: what is listed, searched, previewed, and where each key goes."""

import re
from itertools import product
from pathlib import Path
from shutil import copytree, rmtree
from threading import Event, current_thread, main_thread

import pytest
from rich.console import Console
from rich.style import Style
from textual.events import Click
from textual.geometry import Size
from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from scenarios.loader import builtin_names, parse
from scenarios.logs.directory import RunDirectory
from scenarios.logs.run_state import RunState
from support.runs import RECORDED
from support.screens import Play, notes, painted, rendered, screen_of, text_of, until, write_run
from tui.app import MarketApp
from tui.screens import home as home_screen
from tui.screens.compare import CompareScreen
from tui.screens.configure import ConfigureScreen
from tui.screens.help import HelpScreen
from tui.screens.home import HomeScreen
from tui.screens.market import MarketScreen
from tui.screens.run_dialogs import StartRunDialog
from tui.state import known_runs
from tui.state.catalogue import Entry, age
from tui.state.known_runs import PAPER_POLICIES, paper, recent_runs
from tui.state.pace import TO_WATCH
from tui.state.training_log import NEEDED
from tui.state.watched_run import Session
from tui.widgets.plot import Plot
from tui.widgets.preview import Preview, preview
from tui.widgets.preview_pane import PreviewPane


async def home(pilot: Pilot[None]) -> HomeScreen:
    """The home screen, once it lists the runs, too, which come after the scenarios."""
    screen = pilot.app.screen
    await until(pilot, lambda: screen.entries)
    screen.action_reload()
    await until(pilot, lambda: all(it.is_finished for it in pilot.app.workers if it.group == "reload"))
    return screen


@pytest.mark.slow
async def test_lists_built_in_and_own_scenarios_and_searches(app: MarketApp, small: Path) -> None:
    (small / "mine.csv").write_text(",".join(NEEDED) + "\n")
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await home(pilot)
        entries = screen.query_one(OptionList)
        names = [entry.name for entry in screen.entries if entry.kind != "training"]
        assert names[0] == "quickstart"
        assert set(names) == {*builtin_names(), "small.toml"}
        await until(pilot, lambda: "mine" in painted(app), "the training")
        assert "phones-at-night Phones that charge" in painted(app)  # ages take no room from what scenarios are about
        # A click on an entry that has gone since it was painted does nothing.
        begun = screen.chosen
        entries.post_message(Click(entries, 1, 1, 0, 0, 1, False, False, False, style=Style(meta={"option": 1000})))
        await pilot.pause()
        assert screen.chosen == begun
        await pilot.press("slash", *"small")
        listed = [str(option.prompt) for option in entries.options]
        assert any("small.toml" in name for name in listed)
        assert not any("paper" in name for name in listed)
        await pilot.press("enter")
        assert entries.has_focus
        await pilot.press("escape")
        assert screen.query_one("#search", Input).value == ""
        await pilot.press("slash", *"no such thing")
        assert screen.chosen is None
        await pilot.press("enter", "enter", "c")  # nothing is chosen, nothing happens
        for key in ("e", "p", "r", "space"):
            app.clear_notifications()
            await pilot.press(key)
            assert notes(app) == ["Nothing is chosen."]
        assert app.screen is screen
        # Pages of a list that has no room are not turned.
        await pilot.press("escape")
        await pilot.resize_terminal(20, 1)
        await pilot.press("pagedown", "pageup")


async def test_the_thread_of_a_preview_asks_no_widget_its_size(app: MarketApp, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would lay widgets out while the app does."""
    asked = set()

    def size(pane: PreviewPane) -> Size:
        asked.add(current_thread())
        return pane.content_region.size

    monkeypatch.setattr(PreviewPane, "size", property(size))
    async with app.run_test(size=(120, 30)) as pilot:
        screen = await home(pilot)
        await until(pilot, lambda: "digits" in preview_of(screen), "a preview")
        # What was loaded while the app ended is dropped: its widgets are gone then.
        pane = screen.query_one(PreviewPane)
        await screen.query("#home-right, #entries").remove()
        pane.show(Preview("a preview"))
        screen._list(screen.entries)
    assert asked == {main_thread()}


def preview_of(screen: HomeScreen) -> str:
    return " ".join(text_of(screen.query_one("#preview")).split())


@pytest.mark.slow
async def test_what_is_no_scenario_is_previewed_with_its_problems_and_not_run(app: MarketApp, small: Path) -> None:
    right = (small / "small.toml").read_text()
    (small / "broken.toml").write_text(right.replace("hqfa", "hqfaa"))
    (small / "typo.toml").write_text(right.replace("[[services]]", "[[services]", 1))
    (small / "other.toml").write_text('[tool.mine]\nname = "x"\n')
    async with app.run_test(size=(120, 30)) as pilot:
        screen = await home(pilot)

        async def refused(file: str, key: str, words: str) -> None:
            app.clear_notifications()
            await pilot.press(key)
            assert app.screen is screen
            assert words.format(small / file) in str(notes(app))

        files = [entry.title for entry in screen.entries if entry.kind == "file"]
        assert files == ["broken.toml", "small.toml", "typo.toml (has problems)"]
        await pilot.press("slash", *"broken", "enter")
        await until(pilot, lambda: "did you mean 'hqfa'?" in preview_of(screen))
        await refused("broken.toml", "enter", "1 problem; correct the scenario first")
        await pilot.press("escape", "slash", *"typo", "enter")
        await until(pilot, lambda: "typo.toml has problems:" in preview_of(screen))
        await refused("typo.toml", "e", "{}:14: is not valid TOML")
        assert "correct it in a text editor" in str(notes(app))
        await pilot.press("escape", "slash", *"small.toml", "enter")
        (small / "small.toml").write_bytes(b"\xff\xfe")
        await refused("small.toml", "e", "{}: cannot be read: it is not UTF-8 text")
        # What was deleted meanwhile leaves the list.
        for key in ("r", "e", "enter"):
            (small / "small.toml").write_text(right)
            await home(pilot)
            await pilot.press("escape", "slash", *"small.toml", "enter")
            (small / "small.toml").unlink()
            await refused("small.toml", key, "{}: cannot be read: No such file or directory")
            await until(pilot, lambda: screen.chosen is None)


@pytest.mark.slow
async def test_a_run_that_plays_is_followed_in_list_and_preview(app: MarketApp, small: Path, play_small: Play) -> None:
    place = small / "runs" / "small-00000000" / "hqfa" / "seed-0001"
    write_run(play_small(rounds=3), place)
    async with app.run_test(size=(120, 40)) as pilot:
        with RunDirectory(place).locked():
            screen = await home(pilot)
            await pilot.press("slash", *"hqfa", "enter")
            await until(pilot, lambda: "3 of 12 rounds" in preview_of(screen), "the run")
            table = place / "rounds.csv"
            table.write_text(table.read_text() + "".join(play_small().history[n].text["rounds"] for n in (4, 5)))
            await until(pilot, lambda: "5 of 12 rounds" in preview_of(screen), "more rounds")
        await until(pilot, lambda: [it.state for it in screen.entries if it.is_run] == ["interrupted"], "its end")


@pytest.mark.slow
async def test_keys_lead_to_the_other_screens(app: MarketApp, small: Path, play_small: Play) -> None:
    for policy, rounds in (("hqfa", 12), ("lcfa", 5)):
        write_run(play_small(rounds=rounds), small / "runs" / "small-00000000" / policy / "seed-0001")
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await home(pilot)
        await pilot.press("slash", *"small.toml", "enter", "e")
        assert isinstance(app.screen, ConfigureScreen)
        await pilot.press("escape")
        await pilot.press("enter")
        assert isinstance(app.screen, StartRunDialog)
        await pilot.press("escape", "question_mark")
        assert isinstance(app.screen, HelpScreen)
        assert "Recent runs are those in runs/, or in the folder given with --out." in app.screen.words
        await pilot.press("escape", "escape", "slash", *"hqfa", "enter", "p")
        market = app.screen
        await until(pilot, lambda: len(market.session.history) == 12)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen)
        await pilot.press("escape", "slash", *"targets", "enter", "space", "down", "space")
        assert len(screen.marked) == 2
        await pilot.press("c")
        assert isinstance(app.screen, CompareScreen)
        await pilot.press("escape", "q")


@pytest.mark.slow
async def test_starts_with_a_scenario_or_a_run(small: Path, play_small: Play) -> None:
    place = write_run(play_small(), small / "runs" / "small-00000000" / "hqfa" / "seed-0001")
    app = MarketApp(run=place, out=small / "runs", folder=small)
    async with app.run_test(size=(100, 30)) as pilot:
        await screen_of(pilot, MarketScreen)
    app = MarketApp(scenario=str(small / "small.toml"), out=small / "runs", folder=small)
    async with app.run_test(size=(100, 30)) as pilot:
        dialog = await screen_of(pilot, StartRunDialog)
        for seeds, wrong in (("1", False), ("", True), ("0", True), ("7", False)):
            dialog.query_one("#seed", Input).value = seeds
            await pilot.pause()
            assert dialog.query_one("#go").disabled == wrong


@pytest.mark.usefixtures("just_now")
@pytest.mark.slow
async def test_recent_runs_show_their_state_and_are_found_by_it(app: MarketApp, small: Path, play_small: Play) -> None:
    runs = small / "runs" / "small-00000000"
    for policy in ("hqfa", "lcfa", "random", "ucb", "oort"):
        write_run(play_small(), runs / policy / "seed-0001")
    for policy, status in (("hqfa", "complete"), ("lcfa", "failed"), ("oort", "complete")):
        RunDirectory(runs / policy / "seed-0001").finish({**RECORDED, "status": status})
    (runs / "oort" / "seed-0001" / "events.csv").unlink()
    (runs / "ucb" / "seed-0001" / "meta.json").write_text("[]")
    async with app.run_test(size=(160, 40)) as pilot:
        screen = await home(pilot)
        await pilot.press("slash", *"small · ")
        listed = {" ".join(str(option.prompt).split()) for option in screen.query_one(OptionList).options}
        assert listed >= {
            "small hqfa seed 1 ✔ complete just now 1 of 3 targets",
            "small lcfa seed 1 ✘ failed just now 1 of 3 targets",
            "small random seed 1 ▷ incomplete just now 1 of 3 targets",
            "small ucb seed 1 ✘ unreadable just now 1 of 3 targets",
            "small oort seed 1 ✘ unreadable just now 1 of 3 targets",
        }
        await pilot.press("escape", "slash", *"small · failed", "enter")
        await until(pilot, lambda: "failed, 12 of 12 rounds" in preview_of(screen))
        # A run stays the chosen one when its state changes.
        RunDirectory(runs / "lcfa" / "seed-0001").finish({**RECORDED, "status": "complete"})
        await pilot.press("escape", "f5")
        await until(pilot, lambda: all(entry.state != "failed" for entry in screen.entries))
        await until(pilot, lambda: "complete, 12 of 12 rounds" in preview_of(screen))


def test_runs_of_different_markets_of_one_name_are_told_apart(small: Path, play_small: Play) -> None:
    """The points of a sweep by their values, and what none tells apart by its hash, too."""
    runs = small / "runs"
    for folder, budget in (("small-00000001", "6"), ("small-00000002", "7")):
        scenario = write_run(play_small(), runs / folder / "hqfa" / "seed-0001") / "scenario.toml"
        scenario.write_text(re.sub(r"budget = [0-9.]+", f"budget = {budget}", scenario.read_text(), count=1))
    assert {entry.name for entry in recent_runs(runs)} == {
        f"small (services.alpha.budget={budget}) · hqfa · seed 1" for budget in (6, 7)
    }
    (runs / "small-00000003").mkdir()
    copytree(runs / "small-00000002" / "hqfa", runs / "small-00000003" / "hqfa")
    assert {entry.name for entry in recent_runs(runs)} == {
        "small (services.alpha.budget=6) · hqfa · seed 1",
        *(f"small-0000000{place} (services.alpha.budget=7) · hqfa · seed 1" for place in (2, 3)),
    }


async def test_of_many_runs_the_newest_are_listed_and_the_preview_names_the_point_of_the_sweep(
    app: MarketApp, small: Path, play_small: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A point's values stand in the list below the first of its runs alone, which may be screens above."""
    for budget in (6, 7):
        for seed in (1, 2):
            place = small / "runs" / f"small-0000000{budget}" / "hqfa" / f"seed-{seed:04d}"
            scenario = write_run(play_small(), place) / "scenario.toml"
            scenario.write_text(re.sub(r"budget = [0-9.]+", f"budget = {budget}", scenario.read_text(), count=1))
    for module in (home_screen, known_runs):
        monkeypatch.setattr(module, "MOST_RUNS", 3)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await home(pilot)
        await until(pilot, lambda: "Recent runs, the newest 3 (b: all) · 3" in painted(app), "the runs")
        await pilot.press("G")
        await until(pilot, lambda: "small (services.alpha.budget=6)" in preview_of(screen))
        for _ in range(2):
            listed = [str(option.prompt) for option in screen.query_one(OptionList).options]
            assert sum("\n" in line for line in listed) == 2  # the values stand below the first run of each point
            await pilot.press("k", "space")  # also where the second of two is marked


def test_a_run_whose_plug_in_is_not_loaded_is_previewed(app: MarketApp, small: Path, play_small: Play) -> None:
    place = write_run(play_small(), small / "runs" / "small-00000000" / "mine" / "seed-0001")
    scenario = place / "scenario.toml"
    scenario.write_text(scenario.read_text().replace('"random"', '"of-a-plug-in"'))
    [entry] = recent_runs(small / "runs")
    console = Console(width=200)
    with console.capture() as capture:
        console.print(preview(entry, app, Size(60, 10)).words)
    assert "12 of 12 rounds" in capture.get()


@pytest.mark.usefixtures("just_now")
@pytest.mark.slow
async def test_a_long_name_is_cut_before_seed_state_and_age(app: MarketApp, small: Path, play_small: Play) -> None:
    long = "a-scenario-whose-name-has-as-many-letters-as-a-name-may-have-64a"
    for seed in (1, 2):
        write_run(play_small(), small / "runs" / f"{long}-00000000" / "as-configured" / f"seed-{seed:04d}")
    async with app.run_test(size=(80, 24)) as pilot:
        await home(pilot)
        await pilot.press("slash", *"seed")
        for size in ((80, 24), (120, 40), (160, 48), (200, 60)):
            await pilot.resize_terminal(*size)
            await until(pilot, lambda: "seed 2" in painted(app))
            for row in [line for line in painted(app).splitlines() if "a-scenario" in line and "as-configured" in line]:
                assert re.search(r"a-scenario-\S*… as-configured seed [12] ▷ incomplete just now", row)


@pytest.mark.slow
async def test_a_run_is_previewed_with_curves_that_fit_the_room(app: MarketApp, small: Path, play_small: Play) -> None:
    write_run(play_small(), small / "runs" / "small-00000000" / "hqfa" / "seed-0001")
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await home(pilot)
        await pilot.press("slash", *"seed 1", "enter")
        await until(pilot, lambda: "test accuracy %  by round" in painted(app))
        [row] = [line for line in painted(app).splitlines() if "alpha" in line]
        curve = row.split()[-1]
        assert list(curve) == sorted(curve, key="▁▂▃▄▅▆▇█".index)  # it only learns
        assert curve[0] == "▁"
        await pilot.resize_terminal(160, 48)
        await until(pilot, lambda: screen.query("Plot") and screen.query_one(Plot).size.height > 9)
        assert [curve.sign for curve in screen.query_one(Plot).curves] == ["1", "2", "3"]
        await pilot.press("escape", "home", "down", "down")  # a scenario, which has none
        await until(pilot, lambda: not screen.query_one(Plot).display)
        await until(pilot, lambda: 'name = "changing"' in painted(app))


@pytest.mark.slow
async def test_who_has_nothing_yet_is_offered_three_beginnings(tmp_path: Path) -> None:
    app = MarketApp(out=tmp_path / "runs", folder=tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await home(pilot)
        await until(pilot, lambda: "1 Watch one" in painted(app))
        bottom = painted(app).splitlines()[-1]
        assert "enter Begin 1 Watch one 2 Paper 3 Your own" in bottom
        assert "Compare" not in bottom
        await pilot.press("3")
        assert isinstance(app.screen, ConfigureScreen)
        assert app.screen.own is None
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen)
        assert await pilot.double_click("#entries", offset=(8, 2))  # the first
        market = await screen_of(pilot, MarketScreen)
        assert market.session.speed == TO_WATCH
        await until(pilot, lambda: len(market.session.history) > 1)
        await pilot.press("escape")
        await until(pilot, lambda: all(entry.kind != "beginning" for entry in screen.entries))
        assert "1 Watch one" not in painted(app)


def test_the_papers_market_is_played_by_its_policies_on_fitted_curves(tmp_path: Path) -> None:
    starts = [start for start, _ in paper(tmp_path)]
    assert {(start.policy, start.seed) for start in starts} == set(product(PAPER_POLICIES, range(3)))
    assert {parse(start.scenario).training.backend for start in starts} == {"surrogate"}


@pytest.mark.parametrize(
    ("seconds", "words"), [(-5, "just now"), (59, "just now"), (60, "1 min ago"), (7300, "2 h ago"), (2e5, "2 d ago")]
)
def test_ages_are_in_the_largest_unit(seconds: float, words: str) -> None:
    assert age(seconds) == words


HOSTILE = "[bold]x[b] \x1b[31m\x1b]0;owned\x07"


async def test_names_of_folders_are_shown_as_they_are(small: Path, play_small: Play) -> None:
    out = small / "runs"
    write_run(play_small(), out / "small-00000000" / HOSTILE / "seed-0001")
    written: list[str] = []
    app = MarketApp(out=out, folder=small)
    async with app.run_test(size=(140, 40)) as pilot:
        screen = await home(pilot)
        app.notify(HOSTILE, title=HOSTILE)
        listed = screen.query_one(OptionList)
        await until(pilot, lambda: any(entry.is_run for entry in screen.entries), "the run")
        [place] = [n for n, option in enumerate(listed.options) if "[bold]x[b]" in str(option.prompt)]
        listed.highlighted = place
        await until(pilot, lambda: "of 12 rounds" in painted(app))
        written.append(painted(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, MarketScreen) and "[bold]x" in painted(app))
        written.append(painted(app))
    for text in written:
        assert "[bold]x[b]" in text
        assert "\x1b" not in text


async def test_a_late_preview_does_not_replace_a_newer_one(app: MarketApp, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    ended: list[str] = []
    go_on = Event()

    def slow(entry: Entry, *_: object) -> Preview:
        begun.append(entry.title)
        if len(begun) == 1:
            go_on.wait(60)
        ended.append(entry.title)
        return Preview(f"preview of {entry.title}")

    monkeypatch.setattr("tui.widgets.preview.preview", slow)
    async with app.run_test(size=(140, 40)) as pilot:
        screen = await home(pilot)
        await until(pilot, lambda: begun)
        first = begun[0]
        await pilot.press("down")
        await until(pilot, lambda: "preview of" in painted(app))
        second = ended[-1]
        assert first != second
        go_on.set()
        await until(pilot, lambda: first in ended)
        await pilot.pause(0.2)  # in which the thread would hand its preview over
        assert rendered(screen, "#preview") == f"preview of {second}"


@pytest.mark.parametrize(("width", "height", "cells"), [(120, 40, 68), (160, 48, 91), (200, 60, 114)])
async def test_the_list_grows_with_the_terminal(app: MarketApp, width: int, height: int, cells: int) -> None:
    async with app.run_test(size=(width, height)) as pilot:
        await home(pilot)
        listed = app.screen.query_one(OptionList)
        assert (listed.region.width, listed.region.height) == (cells, height - 3)  # below title and search
        about = "Three services with three policies compete for 16 clients; embedded data, no download."
        assert (about in painted(app).partition("changing")[0]) == (width == 200)


async def test_a_run_that_is_open_and_paused_is_listed_once_as_paused(
    app: MarketApp, small: Path, play_small: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process holds it while it is paused; to who looks at the files alone, it runs."""
    place = small / "runs" / "small-00000000" / "hqfa" / "seed-0001"
    opened = play_small(rounds=3, state=RunState.PAUSED)
    write_run(opened, place)
    opened.directory = place
    monkeypatch.setattr(MarketApp, "sessions", [opened])
    async with app.run_test(size=(160, 40)) as pilot:
        with RunDirectory(place).locked():
            screen = await home(pilot)
            assert [entry.state for entry in screen.entries if entry.is_run] == ["running"]
            listed = screen.query_one(OptionList)
            prompts = [str(option.prompt) for option in listed.options]
            assert ["paused" in prompt for prompt in prompts if "seed 1 " in prompt] == [True]
            listed.highlighted = 1
            await until(pilot, lambda: "3 of 12 rounds" in preview_of(screen))
            assert "paused, 3 of 12 rounds" in preview_of(screen)
            assert "running" not in painted(app)
        # Its folder is deleted, and one that is not open.
        other = write_run(play_small(), small / "runs" / "small-00000000" / "lcfa" / "seed-0001", **RECORDED)
        await home(pilot)
        assert "lcfa" in text_of(listed)
        rmtree(other)
        await until(pilot, lambda: "lcfa" not in text_of(listed), "the list without it")
        rmtree(place)
        opened.miss()
        await until(pilot, lambda: "✘ gone" in text_of(listed), "its state in the list")
        await until(pilot, lambda: "has been removed" in preview_of(screen), "its state in the preview")


async def test_a_run_that_gets_its_directory_while_it_is_listed_is_listed(
    app: MarketApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    def matches_late(text: str, words: list[str]) -> bool:
        session.directory = Path("runs/small/random/seed-0000")
        return True

    async with app.run_test():
        home = app.screen
        assert isinstance(home, HomeScreen)
        session = Session("small")
        app.runs.sessions.append(session)
        monkeypatch.setattr(home_screen, "matches", matches_late)
        assert [shown for _, _, shown in home._open([])] == [session]
        app.runs.sessions.remove(session)


@pytest.mark.slow
async def test_open_runs_are_marked_compared_rerun_and_edited(app: MarketApp, small: Path, play_small: Play) -> None:
    runs = small / "runs" / "small-00000000"
    for policy in ("hqfa", "lcfa"):
        write_run(play_small(), runs / policy / "seed-0001")
    async with app.run_test(size=(160, 40)) as pilot:
        screen = await home(pilot)
        opened = app.runs.open(runs / "hqfa" / "seed-0001")
        await until(pilot, lambda: len(opened.history) == 12)
        await pilot.press("f5")
        listed = screen.query_one(OptionList)
        await until(pilot, lambda: "Open now" in str(listed.options[0].prompt))
        listed.highlighted = 1
        await pilot.press("space")
        assert screen.marked == {runs / "hqfa" / "seed-0001"}
        marked = [str(option.prompt).startswith("✓") for option in listed.options if "hqfa" in str(option.prompt)]
        assert marked == [True]
        [place] = [n for n, option in enumerate(listed.options) if "lcfa" in str(option.prompt)]
        listed.highlighted = place
        await pilot.press("space", "c")
        assert isinstance(app.screen, CompareScreen)
        assert opened in app.screen.sessions
        assert len(app.screen.sessions) == 2
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen)
        for key, wanted in (("r", StartRunDialog), ("e", ConfigureScreen)):
            listed.highlighted = 1
            await pilot.press(key)
            await until(pilot, lambda wanted=wanted: isinstance(app.screen, wanted))
            await pilot.press("escape")
            await until(pilot, lambda: app.screen is screen)
        assert not notes(app)
