"""Home: what is listed, searched, previewed, and where each key goes."""

import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from shutil import copytree
from threading import Event, current_thread, main_thread

import pytest
from rich.console import Console
from rich.style import Style
from textual.events import Click
from textual.geometry import Size
from textual.pilot import Pilot
from textual.widgets import Input, OptionList, Static

from scenarios.loader import builtin_names, parse
from scenarios.logs.directory import RunDirectory
from support.runs import RECORDED
from support.screens import painted, until
from support.tiers import slow
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
    assert isinstance(screen, HomeScreen)
    await until(pilot, lambda: screen.entries)
    screen.action_reload()
    await until(pilot, lambda: all(it.is_finished for it in pilot.app.workers if it.group == "reload"))
    return screen


def write_run(session: Session, place: Path) -> Path:
    """Write a session's run directory, as a run that was interrupted leaves it."""
    from scenarios.logs.columns import TABLES

    place.mkdir(parents=True)
    from scenarios.loader import dumps

    assert session.scenario is not None
    (place / "scenario.toml").write_text(dumps(session.scenario))
    for name, table in TABLES.items():
        rows = "".join(logged.text[name] for logged in session.history)
        table.path(place).write_text(table.header + rows)
    return place


async def test_lists_built_in_and_own_scenarios_and_searches(app: MarketApp) -> None:
    async with app.run_test(size=(100, 30)) as pilot:
        screen = await home(pilot)
        names = [entry.name for entry in screen.entries]
        assert names[0] == "quickstart"
        assert set(names) == {*builtin_names(), "small.toml"}
        await pilot.press("slash", *"small")
        listed = [str(option.prompt) for option in screen.query_one(OptionList).options]
        assert any("small.toml" in name for name in listed)
        assert not any("paper" in name for name in listed)
        await pilot.press("enter")
        assert screen.query_one(OptionList).has_focus
        await pilot.press("escape")
        assert screen.query_one("#search", Input).value == ""
        await pilot.press("slash", *"no such thing")
        assert screen.chosen is None
        await pilot.press("enter", "enter", "e", "p", "r", "space", "c")  # nothing is chosen, nothing happens
        assert pilot.app.screen is screen


async def test_a_click_on_an_entry_that_has_gone_since_it_was_painted_does_nothing(app: MarketApp) -> None:
    async with app.run_test() as pilot:
        screen = await home(pilot)
        entries, begun = screen.query_one(OptionList), screen.chosen
        entries.post_message(Click(entries, 1, 1, 0, 0, 1, False, False, False, style=Style(meta={"option": 1000})))
        await pilot.pause()
        assert screen.chosen == begun


async def test_pages_of_a_list_that_has_no_room_are_not_turned(app: MarketApp) -> None:
    async with app.run_test(size=(20, 1)) as pilot:
        await home(pilot)
        await pilot.press("pagedown", "pageup")


async def test_the_thread_of_a_preview_asks_no_widget_how_large_it_is(
    app: MarketApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would lay widgets out while the app does."""
    asked = set()

    def size(pane: PreviewPane) -> Size:
        asked.add(current_thread())
        return pane.content_region.size

    monkeypatch.setattr(PreviewPane, "size", property(size))
    async with app.run_test(size=(120, 30)) as pilot:
        screen = await home(pilot)
        await until(pilot, lambda: "digits" in text(screen.query_one("#preview", Static)), "a preview")
    assert asked == {main_thread()}


def text(widget: Static) -> str:
    return " ".join(" ".join(strip.text for strip in widget.render_lines(widget.size.region)).split())


async def test_a_broken_scenario_is_previewed_with_its_problems_and_does_not_run(app: MarketApp, small: Path) -> None:
    (small / "broken.toml").write_text((small / "small.toml").read_text().replace("hqfa", "hqfaa"))
    async with app.run_test(size=(120, 30)) as pilot:
        screen = await home(pilot)
        await pilot.press("slash", *"broken", "enter")
        await until(pilot, lambda: "did you mean 'hqfa'?" in text(screen.query_one("#preview", Static)))
        await pilot.press("enter")
        assert pilot.app.screen is screen
        assert [it.message for it in pilot.app._notifications] == ["1 problem; correct the scenario first"]


async def test_a_file_that_is_no_toml_is_listed_as_having_problems_and_previewed_with_its_line(
    app: MarketApp, small: Path
) -> None:
    (small / "typo.toml").write_text((small / "small.toml").read_text().replace("[[services]]", "[[services]", 1))
    (small / "other.toml").write_text('[tool.mine]\nname = "x"\n')
    async with app.run_test(size=(120, 30)) as pilot:
        screen = await home(pilot)
        assert [entry.title for entry in screen.entries if entry.kind == "file"] == [
            "small.toml",
            "typo.toml (has problems)",
        ]
        await pilot.press("slash", *"typo", "enter")
        await until(pilot, lambda: "typo.toml has problems:" in text(screen.query_one("#preview", Static)))


async def test_a_run_that_is_played_is_followed_in_list_and_preview(
    app: MarketApp, small: Path, play_small: Callable[..., Session]
) -> None:
    place = small / "runs" / "small-00000000" / "hqfa" / "seed-0001"
    write_run(play_small(rounds=3), place)
    async with app.run_test(size=(120, 40)) as pilot:
        with RunDirectory(place).locked():
            screen = await home(pilot)
            await pilot.press("slash", *"hqfa", "enter")
            await until(pilot, lambda: "3 of 12 rounds" in text(screen.query_one("#preview", Static)), "the run")
            table = place / "rounds.csv"
            table.write_text(table.read_text() + "".join(play_small().history[n].text["rounds"] for n in (4, 5)))
            await until(pilot, lambda: "5 of 12 rounds" in text(screen.query_one("#preview", Static)), "more rounds")
        await until(pilot, lambda: [it.state for it in screen.entries if it.is_run] == ["interrupted"], "its end")


async def test_keys_lead_to_the_other_screens(app: MarketApp, small: Path, play_small: Callable[..., Session]) -> None:
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
        assert isinstance(market, MarketScreen)
        await until(pilot, lambda: len(market.session.history) == 12)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen)
        await pilot.press("escape", "slash", *"targets", "enter", "space", "down", "space")
        assert len(screen.marked) == 2
        await pilot.press("c")
        assert isinstance(app.screen, CompareScreen)
        await pilot.press("escape", "q")


async def test_starts_with_a_scenario_or_a_run(small: Path, play_small: Callable[..., Session]) -> None:
    place = write_run(play_small(), small / "runs" / "small-00000000" / "hqfa" / "seed-0001")
    app = MarketApp(run=place, out=small / "runs", folder=small)
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, MarketScreen))
    app = MarketApp(scenario=str(small / "small.toml"), out=small / "runs", folder=small)
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, StartRunDialog) and app.screen.query("#go"))
        await pilot.pause()
        dialog = app.screen
        seed = dialog.query_one("#seed", Input)
        assert seed.value == "0"
        seed.value = ""
        await pilot.pause()
        assert dialog.query_one("#go").disabled
        seed.value = "7"
        await pilot.pause()
        assert not dialog.query_one("#go").disabled


@pytest.mark.usefixtures("just_now")
async def test_recent_runs_show_their_state_and_are_found_by_it(
    app: MarketApp, small: Path, play_small: Callable[..., Session]
) -> None:
    runs = small / "runs" / "small-00000000"
    for policy in ("hqfa", "lcfa", "random", "ucb", "oort"):
        (write_run(play_small(), runs / policy / "seed-0001") / "run.log").touch()
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
        await until(pilot, lambda: "failed, 12 of 12 rounds" in text(screen.query_one("#preview", Static)))
        # A run stays the chosen one when its state changes.
        RunDirectory(runs / "lcfa" / "seed-0001").finish({**RECORDED, "status": "complete"})
        await pilot.press("escape", "f5")
        await until(pilot, lambda: all(entry.state != "failed" for entry in screen.entries))
        await until(pilot, lambda: "complete, 12 of 12 rounds" in text(screen.query_one("#preview", Static)))


def test_runs_of_different_markets_of_one_name_are_told_apart(small: Path, play_small: Callable[..., Session]) -> None:
    """The points of a sweep by their values, and what none tells apart, such as a fork, by its hash."""
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
        *(f"small-0000000{place} · hqfa · seed 1" for place in (2, 3)),
    }


async def test_of_many_runs_the_newest_are_listed_and_the_preview_names_the_point_of_the_sweep(
    app: MarketApp, small: Path, play_small: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
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
        await until(pilot, lambda: "small (services.alpha.budget=6)" in text(screen.query_one("#preview", Static)))
        for _ in range(2):
            listed = [str(option.prompt) for option in screen.query_one(OptionList).options]
            assert sum("\n" in line for line in listed) == 2  # the values stand below the first run of each point
            await pilot.press("k", "space")  # also where the second of two is marked


def test_a_run_whose_plug_in_is_not_loaded_is_previewed(
    app: MarketApp, small: Path, play_small: Callable[..., Session]
) -> None:
    place = write_run(play_small(), small / "runs" / "small-00000000" / "mine" / "seed-0001")
    scenario = place / "scenario.toml"
    scenario.write_text(scenario.read_text().replace('"random"', '"of-a-plug-in"'))
    [entry] = recent_runs(small / "runs")
    console = Console(width=200)
    with console.capture() as capture:
        console.print(preview(entry, app, Size(60, 10)).words)
    assert "12 of 12 rounds" in capture.get()


@pytest.mark.usefixtures("just_now")
@pytest.mark.parametrize("size", [(80, 24), (120, 40), *slow(((160, 48),), ((200, 60),))])
async def test_a_long_name_is_cut_before_seed_state_and_age(
    app: MarketApp, small: Path, play_small: Callable[..., Session], size: tuple[int, int]
) -> None:
    long = "a-scenario-whose-name-has-as-many-letters-as-a-name-may-have-64a"
    for seed in (1, 2):
        write_run(play_small(), small / "runs" / f"{long}-00000000" / "as-configured" / f"seed-{seed:04d}")
    async with app.run_test(size=size) as pilot:
        await home(pilot)
        await pilot.press("slash", *"seed")
        await until(pilot, lambda: "seed 2" in painted(app))
        for row in [line for line in painted(app).splitlines() if "a-scenario" in line and "as-configured" in line]:
            assert re.search(r"a-scenario-\S*… as-configured seed [12] ▷ incomplete just now", row)


async def test_ages_of_trainings_take_no_room_from_what_scenarios_are_about(app: MarketApp, small: Path) -> None:
    (small / "mine.csv").write_text(",".join(NEEDED) + "\n")
    async with app.run_test(size=(120, 40)) as pilot:
        await home(pilot)
        await until(pilot, lambda: "mine" in painted(app))
        assert "paper-fitted The paper's settings" in painted(app)


async def test_a_run_is_previewed_with_its_curves_as_large_as_there_is_room_for(
    app: MarketApp, small: Path, play_small: Callable[..., Session]
) -> None:
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
        assert [curve.sign for curve in screen.query_one(Plot)._curves] == ["1", "2", "3"]
        await pilot.press("escape", "home", "down")  # a scenario, which has none
        await until(pilot, lambda: not screen.query_one(Plot).display)
        await until(pilot, lambda: 'name = "changing"' in painted(app))


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
        await until(pilot, lambda: isinstance(app.screen, MarketScreen))
        market = app.screen
        assert isinstance(market, MarketScreen)
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


async def test_names_of_folders_are_shown_as_they_are(small: Path, play_small: Callable[..., Session]) -> None:
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


async def test_a_preview_that_takes_long_does_not_replace_that_of_what_is_highlighted_now(
    app: MarketApp, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        assert str(screen.query_one("#preview", Static).render()) == f"preview of {second}"


async def test_a_file_with_a_syntax_error_is_not_opened_in_the_form_and_its_line_is_named(
    app: MarketApp, small: Path
) -> None:
    typo = small / "typo.toml"
    typo.write_text((small / "small.toml").read_text().replace("[[services]]", "[[services]", 1))
    async with app.run_test(size=(120, 30)) as pilot:
        screen = await home(pilot)
        await pilot.press("slash", *"typo", "enter", "e")
        assert pilot.app.screen is screen
        assert f"{typo}:14: is not valid TOML" in notes(app)
        assert "correct it in a text editor" in notes(app)


async def test_a_file_that_is_not_utf_8_is_neither_run_nor_edited(app: MarketApp, small: Path) -> None:
    async with app.run_test(size=(120, 30)) as pilot:
        screen = await home(pilot)
        await pilot.press("slash", *"small.toml", "enter")
        (small / "small.toml").write_bytes(b"\xff\xfe")
        await pilot.press("e")
        assert pilot.app.screen is screen
        assert f"{small}/small.toml: cannot be read: it is not UTF-8 text" in notes(app)


@pytest.mark.parametrize("key", ["r", "e", "enter"])
async def test_a_file_that_was_deleted_meanwhile_is_named_and_leaves_the_list(
    app: MarketApp, small: Path, key: str
) -> None:
    async with app.run_test(size=(120, 30)) as pilot:
        screen = await home(pilot)
        await pilot.press("slash", *"small.toml", "enter")
        (small / "small.toml").unlink()
        await pilot.press(key)
        assert pilot.app.screen is screen
        assert f"{small}/small.toml: cannot be read: No such file or directory" in notes(app)
        await until(pilot, lambda: screen.chosen is None)


@pytest.mark.slow
async def test_open_runs_are_marked_compared_run_again_and_edited(
    app: MarketApp, small: Path, play_small: Callable[..., Session]
) -> None:
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
        assert [str(option.prompt).startswith("✓") for option in listed.options if "hqfa" in str(option.prompt)] == [
            True,
            True,
        ]
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
            await until(pilot, lambda wanted=wanted: isinstance(app.screen, wanted))  # type: ignore[misc]
            await pilot.press("escape")
            await until(pilot, lambda: app.screen is screen)
        assert notes(app) == ""


async def test_a_key_that_has_nothing_to_act_on_says_so(app: MarketApp) -> None:
    async with app.run_test(size=(100, 30)) as pilot:
        screen = await home(pilot)
        await pilot.press("slash", *"no such thing", "enter")
        for key in ("e", "p", "r", "space"):
            app.clear_notifications()
            await pilot.press(key)
            assert notes(app) == "Nothing is chosen."
        assert pilot.app.screen is screen


def notes(app: MarketApp) -> str:
    return "\n".join(note.message for note in app._notifications)


async def test_what_was_loaded_while_the_app_ended_is_dropped(app: MarketApp) -> None:
    """Its widgets are gone then."""
    async with app.run_test(size=(120, 40)) as pilot:
        home = app.screen
        assert isinstance(home, HomeScreen)
        await until(pilot, lambda: home.entries, "the lists")
        pane = home.query_one(PreviewPane)
        await home.query("#home-right, #entries").remove()
        pane.show(Preview("a preview"))
        home._list(home.entries)
