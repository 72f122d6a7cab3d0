"""The market screen: every key, on state, over a run that was played before."""

import os
from pathlib import Path

import pytest
from textual.widgets import Input

import flmarket
from scenarios.loader import parse
from scenarios.logs.run_state import RunState
from support.runs import RECORDED, played
from support.screens import Play, hold, notes, painted, rendered, until, watching, write_run
from tui.app import MarketApp
from tui.panels.client_grid import ClientGrid, ClientsPanel, Heat
from tui.panels.curves import CurvesPanel
from tui.panels.event_log import EventLines
from tui.panels.gantt import CoreLines
from tui.panels.order_book import BookPanel
from tui.panels.services import ServicesTable
from tui.panels.status_line import StartSteps, StatusLine
from tui.screens.market import MarketScreen
from tui.widgets.table_view import TableView


def status(screen: MarketScreen) -> str:
    return rendered(screen, StatusLine)


def displayed(screen: MarketScreen) -> list[int]:
    """The numbers of the panels that are shown."""
    return [panel.NUMBER for panel in screen.panels.all if panel.display]


@pytest.mark.slow
async def test_keys_go_through_the_rounds_and_say_why_where_they_do_not(app: MarketApp, play_small: Play) -> None:
    session = play_small()
    exits, conflicts = session.history.exits, session.history.conflicts
    async with watching(app, session) as (pilot, screen):
        # A finished run shows its last round.
        assert screen.head.round == len(session.history) == 12
        assert "complete" in status(screen)
        table = screen.query_one(ServicesTable)
        assert table.count == 3
        assert [str(table.cell(m, "service")) for m in range(3)] == ["alpha", "beta", "gamma"]
        assert "left" in str(table.cell(0, "status"))
        # Seeking.
        for keys, round_ in (
            (["home"], 1),
            (["left"], 1),
            (["right", "]", "]"], 4),
            (["["], 3),
            (["}"], 12),
            (["{"], 2),
            (["end"], 12),
            (["home", "f"], 12),
        ):
            await pilot.press(*keys)
            assert screen.head.round == round_, keys
        assert screen.head.following
        # Jumps to exits and conflicts.
        await pilot.press("home", "n")
        assert screen.head.round == exits[0]
        await pilot.press("end", "N")
        assert screen.head.round == [n for n in exits if n < 12][-1]
        await pilot.press("home", "o")
        assert screen.head.round == next(n for n in conflicts if n > 1)
        await pilot.press("O")
        assert screen.head.round == 1
        await pilot.press("N")
        assert screen.head.round == 1  # there is none before
        # Services are counted that took part in the round shown.
        for number, count in ((exits[0], 3), (exits[0] + 1, 2)):
            screen.head.seek(session.history, number)
            screen.draw()
            assert f" {count} of 3 services take part" in status(screen)
        # A key that does nothing says why and only once.
        await pilot.press("end")
        for keys, words in (
            (["right", "s", "right"], "Round 12 is the newest."),
            (["home", "left", "left"], "Round 1 is the first."),
            (["plus", "plus"], "There is no higher speed."),
            (["minus"] * 9, "There is no lower speed."),
        ):
            app.clear_notifications()
            await pilot.press(*keys)
            assert notes(app) == [words]
        # Where there is nothing to jump to, it says so.
        for state, words in ((RunState.COMPLETE, "round 12."), (RunState.RUNNING, "round 12 so far.")):
            session.move(state)
            app.clear_notifications()
            await pilot.press("end", "n", "o")
            assert set(notes(app)) == {
                f"No service leaves after {words}",
                f"No offer is outbid or dropped after {words}",
            }
    assert screen.session.speed == 0.25


@pytest.mark.slow
async def test_a_run_opens_at_the_round_that_is_asked_for(two_services: str, tmp_path: Path) -> None:
    app = MarketApp(run=played(parse(two_services), tmp_path).path, round_=2, folder=tmp_path)
    async with app.run_test(size=(160, 48)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, MarketScreen) and app.screen.session.over, "the run")
        assert isinstance(app.screen, MarketScreen)
        await until(pilot, lambda: "round 2/" in status(app.screen), "the round")
        await pilot.press("f")
        assert app.screen.head.round == len(app.screen.session.history) > 2


@pytest.mark.slow
async def test_walking_through_the_events_of_a_round_and_filtering_them(app: MarketApp, play_small: Play) -> None:
    from tui.screens.help import HelpScreen

    async with watching(app, play_small()) as (pilot, screen):
        await pilot.press("home", "e")
        assert screen.head.event == 1
        assert "refresh their data" in status(screen)
        grid, table = screen.query_one(ClientGrid), screen.query_one(ServicesTable)
        total = len(screen.view.events)
        decisions = 1 + 3 + 3  # refresh, three bids, three decisions
        await hold(pilot, "e", decisions - 1)
        assert screen.head.event == decisions
        wanted = [mark for c in range(8) for m in range(3) if (mark := screen.view.mark(m, c)) == "?"]
        assert len(wanted) == len(screen.view.logged.offers)
        assert "0.00" in str(table.cell(0, "spent"))
        assert screen.query_one(CoreLines).count == 0
        await pilot.press("E")
        assert screen.head.event == decisions - 1
        await hold(pilot, "e", total - decisions + 1)
        assert screen.head.event == total
        assert screen.view.mark(*_served(screen)) == "●"
        await pilot.press("e")
        assert screen.head.event is None  # the whole round again
        assert grid.count == 8
        # Events are filtered.
        await pilot.press("home")
        lines = screen.query_one(EventLines)
        everything = lines.count
        await pilot.press("5", "slash")
        assert screen.query_one("#event-filter", Input).has_focus
        await pilot.press(*"client", "space", *"3")
        assert 0 < lines.count < everything
        assert {event.client for event in lines.events} == {3}
        await pilot.press("enter")
        assert lines.has_focus
        await pilot.press("escape")
        assert lines.count == everything
        assert isinstance(screen.app.screen, MarketScreen)
        # Home and end move the cursor inside the filter.
        await pilot.press("home", "right", "right", "5", "slash", *"bid")
        field = screen.query_one("#event-filter", Input)
        await pilot.press("home")
        assert (screen.head.round, field.cursor_position) == (3, 0)
        await pilot.press("end")
        assert (screen.head.round, screen.head.following, field.cursor_position) == (3, False, 3)
        await pilot.press("enter", "home")
        assert screen.head.round == 1
        # The seek bar takes clicks.
        await pilot.click("#seek", offset=(1, 0))
        assert screen.head.round == 1
        await pilot.click("#seek", offset=(158, 0))
        assert screen.head.round == 12
        # Help is of the focused panel.
        await pilot.press("4", "question_mark")
        assert isinstance(app.screen, HelpScreen)
        assert "Order book   (esc closes" in painted(app)
        assert ("b", "The book of the service, or that of the client") in app.screen.keys
        assert ("O", "Previous round in which an offer is refused") in app.screen.keys
        assert ("N", "Previous round in which a service leaves") in app.screen.keys
        await pilot.press("escape", "5", "f1")
        assert isinstance(app.screen, HelpScreen)
        assert "Events   (esc closes" in painted(app)


def _served(screen: MarketScreen) -> tuple[int, int]:
    names = [row.service for row in screen.view.logged.services]
    offer = next(o for o in screen.view.logged.offers if o.outcome == "served")
    return names.index(offer.service), offer.client


@pytest.mark.slow
async def test_a_replay_plays_pauses_and_changes_speed(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        await pilot.press("minus", "minus")
        assert screen.session.speed == 5
        await pilot.press("plus", "+")
        assert screen.session.speed is None
        await pilot.press(*["minus"] * 5)
        assert screen.session.speed == 0.5  # the end does not come before the next key, however slow the machine is
        await pilot.press("space")  # from the start, as it stands at the end
        assert "replaying" in status(screen)
        await until(pilot, lambda: screen.head.round >= 2, "the next round")
        await pilot.press("space")
        held = screen.head.round
        assert held < 12
        await pilot.press("F")
        await pilot.pause(0.6)
        assert screen.head.round == held
        await pilot.press("home", "s")
        assert screen.head.round == 2


@pytest.mark.slow
async def test_panels_are_reached_and_maximised_and_curves_switched_and_copied(
    app: MarketApp, play_small: Play
) -> None:
    session = play_small()
    async with watching(app, session, (140, 40)) as (pilot, screen):
        for number in range(1, 8):
            await pilot.press(str(number))
            assert screen.panels.all[number - 1].has_focus_within
        await pilot.press("4", "m")
        assert displayed(screen) == [4]
        assert screen.query_one(BookPanel).size.width > 130
        await pilot.press("2")
        assert displayed(screen) == [2]
        await pilot.press("escape")
        assert displayed(screen) == [1, 2, 3, 4, 7]
        await pilot.press("5")
        assert displayed(screen) == [1, 2, 3, 4, 5, 6]
        # Curves switch.
        curves, seen = screen.query_one(CurvesPanel), []
        for _ in range(4):
            seen.append(curves.metric)
            await pilot.press("v")
        assert seen == ["accuracy", "reward", "spent", "mean_payment"]
        assert curves.metric == "accuracy"
        # A row or the whole table is copied, and the numbers of curves as a table.
        await pilot.press("1", "down", "y")
        assert app.clipboard.split("\t")[:2] == ["2", "beta"]
        await pilot.press("Y")
        titles, *rows = app.clipboard.splitlines()
        assert titles.startswith("#\tservice\tstatus")
        assert [line.split("\t")[1] for line in rows] == ["alpha", "beta", "gamma"]
        await pilot.press("2", "v", "[", "y")  # rewards
        rewards = [row.reward for row in session.history[11].services]
        assert app.clipboard == "\t".join(["11", *(f"{reward:.6g}" for reward in rewards)])
        await pilot.press("Y")
        titles, *rounds = app.clipboard.splitlines()
        assert titles.split("\t") == ["round", "alpha", "beta", "gamma"]
        assert [line.split("\t")[0] for line in rounds] == [str(number) for number in range(1, 12)]
        await pilot.press("v", "v", "home", "e", "y")  # prices, in a walk through round 1: nothing is known yet
        assert app.clipboard.startswith(titles)


@pytest.mark.slow
async def test_a_market_of_200_clients_and_its_overview(app: MarketApp, play_small: Play, scenario_text: str) -> None:
    head, first, *_ = scenario_text.split("[[services]]")
    names = [f"service-{m}" for m in range(20)]
    services = "".join("[[services]]" + first.replace('"alpha"', f'"{name}"') for name in names)
    groups = '[[clients.groups]]\nname = "servers"\ncount = 2\n\n[[clients.groups]]\nname = "phones"\ncount = 5\n\n'
    for old, new in (("count = 8", "count = 200"), ("cores = 1", "cores = 3"), ("rounds = 12", "rounds = 3")):
        head = head.replace(old, new)
    async with watching(app, play_small(head.replace("# The first.", groups) + services), (140, 40)) as (pilot, screen):
        await pilot.press("3", "ctrl+end")
        grid = screen.query_one(ClientGrid)
        assert grid.cursor == 199
        assert grid.scroll_offset.y > 150
        await hold(pilot, "right", 19)
        assert grid.column == 19
        assert screen.query_one(BookPanel).target.count == 200
        title = str(screen.query_one(ClientsPanel).border_title)
        assert title.replace("–", "-").endswith("200 with 3 cores each, 0-1 servers, 2-6 phones")  # noqa: RUF001
        # The overview has all clients on the screen.
        await pilot.press("home", "ctrl+home", "h")
        assert 5 < grid.count <= grid.size.height - 1
        served = [offer.service for offer in screen.view.logged.offers if offer.outcome == "served"]
        assert list(Heat(screen.view, grid.size.height - 1).served.sum(axis=0)) == [
            served.count(name) for name in names
        ]
        await pilot.press("down", "down", "enter")  # to the clients of the third group
        assert grid.count == 200
        assert grid.cursor % 2 == 0
        assert grid.cursor >= 2 * 200 // screen.size.height


@pytest.mark.slow
async def test_files_that_are_cut_under_a_replay_end_it_and_not_the_app(app: MarketApp, small: Path) -> None:
    [path] = flmarket.run(small / "small.toml", out=small / "runs", workers=0, progress=False).paths
    session = app.runs.open(path)
    async with watching(app, session) as (pilot, screen):
        await until(pilot, lambda: session.state is RunState.COMPLETE)
        offers = path / "offers.csv"
        os.truncate(offers, offers.stat().st_size // 2)
        session.history._looked_at.rounds.clear()
        await pilot.press("[")
        await until(pilot, lambda: session.state is RunState.UNREADABLE)
        words = "cannot be replayed: offers.csv: has become shorter since the run was read"
        await until(pilot, lambda: words in status(screen), "the reason")


@pytest.mark.slow
async def test_a_small_terminal_has_tabs_and_panels_side_by_side_are_maximised(
    app: MarketApp, play_small: Play
) -> None:
    """Curves stand below the services, as these are few."""
    async with watching(app, play_small(), (80, 24)) as (pilot, screen):
        assert displayed(screen) == [1, 2]
        assert screen.query_one("#curve-area").region.bottom < screen.panels.region.bottom
        await pilot.press("3")
        assert displayed(screen) == [3]
        assert screen.query_one(ClientGrid).size.height > 12
        await pilot.click("#panel-bar", offset=(1, 0))
        assert displayed(screen) == [1, 2]
        await pilot.resize_terminal(200, 60)
        await pilot.pause()
        assert displayed(screen) == [1, 2, 3, 4, 5, 6, 7, 8]
        await pilot.resize_terminal(40, 10)
        await pilot.pause()
        assert len([panel for panel in screen.panels.all if panel.display]) == 1
        # A key for a panel that is not shown uncovers it.
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        await pilot.press("3", "v")
        assert screen.panels.active == 2
        assert screen.query_one(CurvesPanel).metric == "reward"
        await pilot.press("b")
        assert screen.panels.active == 4
        assert screen.query_one(BookPanel).by_client
        await pilot.resize_terminal(120, 40)
        await pilot.pause()
        screen.selected = (0, 0)
        # Left and right choose a service in the clients and seek in the order book.
        await pilot.press("home", "3", "right", "right", "left")
        assert (screen.head.round, screen.selected[0]) == (1, 1)
        await pilot.press("4", "right", "right")
        assert screen.head.round == 3
        await pilot.press("left")
        assert screen.head.round == 2
        assert screen.query_one(BookPanel).target.scroll_x == 0
        # Maximising is offered where panels stand side by side.
        assert "m" in screen.active_bindings
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: "m" not in screen.active_bindings, "one panel at a time")
        await pilot.resize_terminal(120, 40)
        await until(pilot, lambda: "m" in screen.active_bindings, "side by side again")


async def test_a_fork_says_how_far_it_has_replayed_what_it_shares(app: MarketApp, play_small: Play) -> None:
    whole, fork = play_small(), play_small(rounds=2, state=RunState.RUNNING)
    fork.hurry = 4  # it differs from round 5 on
    async with watching(app, fork) as (pilot, screen):
        assert "replaying round 3 of the 4 shared with the original" in status(screen)
        for number, words in ((3, "replaying round 4 of the 4"), (4, "services take part")):
            fork.add(whole.history[number].text)
            await until(pilot, lambda words=words: words in status(screen), "the round")


async def test_at_80_columns_the_status_cuts_no_number_and_no_reason(app: MarketApp, play_small: Play) -> None:
    session = play_small(state=RunState.RUNNING)
    session.speed, session.pace.rate = 5.0, lambda: 4.86
    session.directory = Path("/home/somebody/experiments/runs/quickstart-00000000/as-configured/seed-0001")

    def lines() -> list[str]:
        return [line.rstrip() for line in painted(app).splitlines()]

    async with watching(app, session, (80, 24)) as (pilot, _):
        assert " left " in lines()[0]
        assert lines()[1].endswith("spent")
        session.move(RunState.COMPLETE)
        await until(pilot, lambda: " 7: summary " in lines()[0], "the end")
        assert lines()[1].endswith("spent")
        # Keys for which there is no room are counted out, and help has them.
        assert "…" in lines()[-1]
        assert "x Export" not in lines()[-1]
        await pilot.press("question_mark")
        await until(
            pilot, lambda: "Export a table as CSV, or a picture of the screen" in dict(map(reversed, app.screen.keys))
        )
        await pilot.press("escape", "home")
        assert lines()[0].split("  ")[1] == "small · as-configured · seed 1"
        assert lines()[1].endswith("spent")
        for error in ("{0}: cannot be replayed: no round 3 in offers.csv", "no data\nlog: {0}/run.log"):
            session.move(RunState.FAILED, error.format(session.directory))
            words = error.partition("\n")[0].removeprefix("{0}: ")
            await until(pilot, lambda words=words: words in painted(app), words)
            assert "…" not in lines()[1]


@pytest.mark.slow
async def test_the_events_follow_a_quick_walk(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small(), (160, 40)) as (pilot, screen):
        lines = screen.query_one(EventLines)
        await pilot.press("home", "e")
        await until(pilot, lambda: not lines.show_vertical_scrollbar, "so few lines that they need no scrollbar")
        await hold(pilot, "e", 29)
        await pilot.pause()
        assert lines.cursor == 29
        top = lines.scroll_offset.y
        assert lines.size.height < 30
        assert top <= lines.cursor < top + lines.size.height
        await hold(pilot, "E", 25)
        await pilot.pause()
        assert lines.scroll_offset.y <= lines.cursor == 4


async def test_until_the_first_round_the_screen_shows_what_is_to_be_played(app: MarketApp, play_small: Play) -> None:
    session = play_small(rounds=0, state=RunState.STARTING)
    session.open_with("reading digits")
    session.open_with("building the market and its models")
    async with watching(app, session, (80, 24)) as (pilot, screen):
        opening = screen.query_one(StartSteps)
        session.move(
            RunState.FAILED, "data set 'emnist-digits': /data/EMNIST/raw lacks some files; fetch them elsewhere"
        )
        await until(pilot, lambda: session.error in " ".join(painted(app).split()), "all of the reason")
        session.error = None
        session.move(RunState.STARTING)
        await until(pilot, lambda: "emnist" not in painted(app), "another beginning")
        assert opening.display
        assert not screen.panels.display
        words = painted(app)
        assert "✔ reading digits" in words
        assert "… building the market and its models" in words
        assert "3 services compete for 8 clients" in words

        session.history.append(play_small(rounds=1).history[1])
        session.changed()
        session.move(RunState.RUNNING)
        await until(pilot, lambda: screen.panels.display, "the panels")
        assert not opening.display
        await until(pilot, lambda: isinstance(screen.focused, TableView), "the focus")


async def test_a_complete_run_is_being_read_and_not_starting_before_its_rounds_are_there(
    app: MarketApp, small: Path, play_small: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = write_run(play_small(), small / "runs" / "small-00000000" / "hqfa" / "seed-0001", **RECORDED)
    monkeypatch.setattr(MarketApp, "_work", lambda *_: None)  # the thread that reads has not begun
    async with watching(app, app.runs.open(place)) as (_, screen):
        assert status(screen).split()[:2] == ["…", "reading"]
        assert status(screen).endswith("reading the run's files")


async def test_after_the_end_of_a_run_a_service_has_missed_its_target_and_does_not_train(
    app: MarketApp, play_small: Play
) -> None:
    session = play_small(state=RunState.RUNNING)
    async with watching(app, session) as (pilot, screen):
        table = screen.query_one(ServicesTable)
        [gone, *_] = [row.status.gone for row in session.history[12].services]
        for state, key, words in (
            (RunState.RUNNING, "end", "▶ training"),
            (RunState.COMPLETE, "end", "✘ missed"),
            (RunState.COMPLETE, "left", "▶ training"),  # the round before the last
        ):
            session.move(state)
            await pilot.press(key)
            shown = [table.cell(index, "status").plain for index in range(3)]
            assert shown == ["⏏ left", words, words], (state, key)
        assert gone


WAITS = {
    RunState.STARTING: "loading data and models",
    RunState.READING: "reading the run's files",
    RunState.PAUSED: "paused before the first round: space plays the run, s one round",
    RunState.RUNNING: "playing the first round",
    RunState.INCOMPLETE: "waiting for the first round of another process",
    RunState.WAITING: "waits until a core is free; it begins when one of the runs that play ends",
    RunState.INTERRUPTED: "no round was played",
}


@pytest.mark.slow
async def test_before_the_first_round_the_status_says_what_the_run_waits_for(app: MarketApp, play_small: Play) -> None:
    session = play_small(rounds=0, state=RunState.STARTING)
    async with watching(app, session) as (pilot, screen):
        for state, words in WAITS.items():
            session.move(state)
            await until(pilot, lambda words=words: status(screen).endswith(f"\n {words}"), words)
        for state, words in ((RunState.STARTING, "There is no round yet."), (RunState.FAILED, "No round was played.")):
            session.move(state)
            for key in ("space", "s", "e", "E", "left", "right"):
                app.clear_notifications()
                await pilot.press(key)
                assert notes(app) == [words], key
        await pilot.press("home", "n", "o", "v", "b", "i", "x", "m", "m")
        assert screen.head.round == 0
        await pilot.press("g")
        assert app.screen is screen
        assert "No round has been played yet." in notes(app)
