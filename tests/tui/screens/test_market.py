"""The market screen: every key, on state, over a run that was played before."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.widgets import Input, Static

import flmarket
from des.log_records import Kind
from scenarios.loader import parse
from scenarios.logs.run_state import RunState
from support.runs import played
from support.screens import hold, painted, until, watching
from tui.app import MarketApp
from tui.panels.client_grid import ClientGrid, ClientsPanel
from tui.panels.curves import CurvesPanel
from tui.panels.event_log import EventLines
from tui.panels.gantt import CoreLines
from tui.panels.order_book import BookPanel, GrowingText
from tui.panels.price_bars import REFUSED, SERVED
from tui.panels.services import ServicesTable
from tui.panels.status_line import StartSteps, StatusLine
from tui.screens.market import MarketScreen
from tui.state.bid_verdicts import ORDER, BidVerdict
from tui.state.watched_run import Session
from tui.widgets.table_view import TableView

Play = Callable[..., Session]


def status(screen: MarketScreen) -> str:
    return str(screen.query_one(StatusLine).render())


async def test_a_finished_run_shows_its_last_round(app: MarketApp, play_small: Play) -> None:
    session = play_small()
    async with watching(app, session) as (_, screen):
        assert screen.head.round == len(session.history) == 12
        assert "complete" in status(screen)
        table = screen.query_one(ServicesTable)
        assert table.count == 3
        assert [str(table.cell(m, "service")) for m in range(3)] == ["alpha", "beta", "gamma"]
        assert "left" in str(table.cell(0, "status"))


async def test_a_run_opens_at_the_round_that_is_asked_for(app: MarketApp, two_services: str, tmp_path: Path) -> None:
    app._run_path, app._round = played(parse(two_services), tmp_path).path, 2
    async with app.run_test(size=(160, 48)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, MarketScreen) and app.screen.session.over, "the run")
        assert isinstance(app.screen, MarketScreen)
        await until(pilot, lambda: "round 2/" in status(app.screen), "the round")  # type: ignore[arg-type]
        await pilot.press("f")
        assert app.screen.head.round == len(app.screen.session.history) > 2


async def test_the_numbers_of_curves_are_copied_as_a_table(app: MarketApp, play_small: Play) -> None:
    session = play_small()
    async with watching(app, session) as (pilot, _):
        await pilot.press("2", "v", "[", "y")  # rewards
        rewards = [row.reward for row in session.history[11].services]
        assert app.clipboard == "\t".join(["11", *(f"{reward:.6g}" for reward in rewards)])
        await pilot.press("Y")
        titles, *rounds = app.clipboard.splitlines()
        assert titles.split("\t") == ["round", "alpha", "beta", "gamma"]
        assert [line.split("\t")[0] for line in rounds] == [str(number) for number in range(1, 12)]
        await pilot.press("v", "v", "home", "e", "y")  # prices, in a walk through round 1: nothing is known yet
        assert app.clipboard.startswith(titles)


async def test_seeking(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
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


async def test_jumps_to_exits_and_conflicts(app: MarketApp, play_small: Play) -> None:
    session = play_small()
    exits, conflicts = session.history.exits, session.history.conflicts
    assert exits
    assert conflicts
    async with watching(app, session) as (pilot, screen):
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


@pytest.mark.parametrize(("state", "words"), [(RunState.COMPLETE, "round 12."), (RunState.RUNNING, "round 12 so far.")])
async def test_where_there_is_nothing_to_jump_to_it_says_so(
    app: MarketApp, play_small: Play, state: RunState, words: str
) -> None:
    async with watching(app, play_small(state=state)) as (pilot, _):
        await pilot.press("n", "o")
        said = {note.message for note in app._notifications}
        assert said == {f"No service leaves after {words}", f"No offer is outbid or dropped after {words}"}


async def test_walking_through_the_events_of_a_round(app: MarketApp, play_small: Play) -> None:
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
        assert len(wanted) == len(screen.view.logged.offers)  # type: ignore[union-attr]
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


def _served(screen: MarketScreen) -> tuple[int, int]:
    names = [row.service for row in screen.view.logged.services]  # type: ignore[union-attr]
    offer = next(o for o in screen.view.logged.offers if o.outcome == "served")  # type: ignore[union-attr]
    return names.index(offer.service), offer.client


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


async def test_panels_are_reached_by_number_and_maximised(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        for number in range(1, 8):
            await pilot.press(str(number))
            assert screen.panels.all[number - 1].has_focus_within
        await pilot.press("4", "m")
        assert [panel.NUMBER for panel in screen.panels.all if panel.display] == [4]
        assert screen.query_one(BookPanel).size.width > 150
        await pilot.press("2")
        assert [panel.NUMBER for panel in screen.panels.all if panel.display] == [2]
        await pilot.press("escape")
        assert [panel.NUMBER for panel in screen.panels.all if panel.display] == [1, 2, 3, 4, 7]
        await pilot.press("5")
        assert [panel.NUMBER for panel in screen.panels.all if panel.display] == [1, 2, 3, 4, 5, 6]


async def test_curves_switch(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        curves, seen = screen.query_one(CurvesPanel), []
        for _ in range(4):
            seen.append(curves.metric)
            await pilot.press("v")
        assert seen == ["accuracy", "reward", "spent", "mean_payment"]
        assert curves.metric == "accuracy"


async def test_the_order_book_follows_what_is_chosen_and_gives_reasons(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        await pilot.press("home", "o", "1", "down")
        assert screen.selected[0] == 1
        book = screen.query_one(BookPanel)
        assert "beta" in str(book.border_title)
        table = book.target
        assert table.count == 8
        whys = " ".join(str(table.cell(c, "why")) for c in range(8))
        assert "core 0, paid its bid" in whys
        assert "does not fit the remaining budget" in whys
        everything = " ".join(
            screen.view.book.line(m, client).reason  # type: ignore[union-attr]
            for m in range(3)
            for client in range(8)
        )
        assert " < " in everything or "lost the draw" in everything
        await pilot.press("b")
        assert book.by_client
        assert table.count == 3
        await pilot.press("3", "down", "down", "right", "enter")
        assert screen.selected == (1, 2)
        assert "client 2" in str(book.border_title)
        await pilot.press("b")
        assert not book.by_client


async def test_the_book_is_sorted_by_a_click_on_a_column(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        await pilot.press("home")
        table = screen.query_one(BookPanel).target
        await pilot.click(table, offset=(12, 0))
        bids = [float(str(table.cell(i, "bid"))) for i in range(8)]
        assert bids == sorted(bids)


async def test_the_book_begins_with_what_happened_and_may_leave_out_the_rest(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        await pilot.press("home", "o", "4")
        book = screen.query_one(BookPanel)
        table = book.target
        lines = [table.bid(row) for row in range(table.count)]
        ranks = [ORDER.index(line.verdict) for line in lines if line]
        assert len(ranks) == 8
        assert ranks == sorted(ranks)
        assert "4 Order book · alpha, 0.00 of 10.00 left" in str(book.border_title)
        await pilot.press("w")
        offered = screen.view.logged.services[0].wanted  # type: ignore[union-attr]
        assert 0 < table.count == offered < 8
        assert all(line.payment is not None for row in range(offered) if (line := table.bid(row)))
        assert "only offers" in str(book.border_title)
        await pilot.press("w")
        assert table.count == 8


async def test_the_cursor_of_the_book_stays_on_its_client(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        await pilot.press("home", "4", "down", "down", "down")
        table = screen.query_one(BookPanel).target
        chosen = table.bid(table.cursor)
        assert chosen
        assert screen.selected[1] == chosen.client
        for _ in range(4):
            await pilot.press("]")
            moved = table.bid(table.cursor)
            assert moved
            assert moved.client == chosen.client


async def test_the_bars_have_the_room_and_quality_and_reasons_follow_where_there_is_more(
    app: MarketApp, play_small: Play
) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        await pilot.press("home", "4")
        assert re.search(r"offer +0 +1 .* DQI +D +EMD ", painted(app))
        reason = str(screen.query_one("#book-reason", Static).render())
        assert "DQI" in reason
        await pilot.press("m")
        await pilot.pause()
        assert re.search(r"offer +0.* DQI +D +EMD +why", painted(app))


async def test_in_a_walk_bars_and_rivals_come_with_decisions_and_are_solid_once_served(
    app: MarketApp, play_small: Play
) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        await pilot.press("home", "o", "4", "b")
        table, events = screen.query_one(BookPanel).target, screen.view.events

        def drawn() -> str:
            return "".join(table.line(row)[1].plain for row in range(table.count))

        assert SERVED in drawn()
        assert REFUSED in drawn()
        decisions = [place for place, event in enumerate(events) if event.event is Kind.DECISION]
        for happened, found in ((decisions[0], ""), (decisions[-1] + 1, REFUSED), (len(events), REFUSED + SERVED)):
            screen.head.event = happened
            screen.draw()
            assert {mark for mark in SERVED + REFUSED if mark in drawn()} == set(found)


async def test_the_overview_has_all_clients_on_the_screen(app: MarketApp, play_small: Play, scenario_text: str) -> None:
    text = scenario_text.replace("count = 8", "count = 200").replace("rounds = 12", "rounds = 3")
    async with watching(app, play_small(text)) as (pilot, screen):
        await pilot.press("home", "3", "h")
        grid = screen.query_one(ClientGrid)
        assert 5 < grid.count <= grid.size.height - 1
        got = [
            sum(offer.outcome == "served" for offer in screen.view.logged.offers if offer.service == name)  # type: ignore[union-attr]
            for name in ("alpha", "beta", "gamma")
        ]
        assert list(grid._heat.served.sum(axis=0)) == got  # type: ignore[union-attr]
        await pilot.press("down", "down", "enter")  # to the clients of the third group
        assert grid.count == 200
        assert grid.cursor % 2 == 0
        assert grid.cursor >= 2 * 200 // screen.size.height


async def test_the_clients_of_groups_are_named(app: MarketApp, play_small: Play, scenario_text: str) -> None:
    groups = '[[clients.groups]]\nname = "servers"\ncount = 2\n\n[[clients.groups]]\nname = "phones"\ncount = 5\n\n'
    async with watching(app, play_small(scenario_text.replace("# The first.", groups))) as (pilot, screen):
        await pilot.press("home", "3")
        title = str(screen.query_one(ClientsPanel).border_title)
        assert title.replace("–", "-").endswith("8 with 1 core each, 0-1 servers, 2-6 phones")  # noqa: RUF001


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


async def test_events_are_filtered(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
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


async def test_help_is_of_the_focused_panel(app: MarketApp, play_small: Play) -> None:
    from tui.screens.help import HelpScreen

    async with watching(app, play_small()) as (pilot, _):
        await pilot.press("4", "question_mark")
        assert isinstance(app.screen, HelpScreen)
        assert app.screen._title == "Order book"
        assert ("b", "The book of the service, or that of the client") in app.screen._keys
        assert ("O", "Previous round in which an offer is refused") in app.screen._keys
        assert ("N", "Previous round in which a service leaves") in app.screen._keys
        await pilot.press("escape", "5", "f1")
        assert isinstance(app.screen, HelpScreen)
        assert app.screen._title == "Events"


async def test_the_seek_bar_takes_clicks(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        await pilot.click("#seek", offset=(1, 0))
        assert screen.head.round == 1
        await pilot.click("#seek", offset=(158, 0))
        assert screen.head.round == 12


async def test_folds_into_tabs_where_it_is_small_and_back(app: MarketApp, play_small: Play) -> None:
    """Curves stand below the services, as these are few."""
    async with watching(app, play_small(), (80, 24)) as (pilot, screen):
        assert [panel.NUMBER for panel in screen.panels.all if panel.display] == [1, 2]
        assert screen.query_one("#curve-area").region.bottom < screen.panels.region.bottom
        await pilot.press("3")
        assert [panel.NUMBER for panel in screen.panels.all if panel.display] == [3]
        assert screen.query_one(ClientGrid).size.height > 12
        await pilot.click("#panel-bar", offset=(1, 0))
        assert [panel.NUMBER for panel in screen.panels.all if panel.display] == [1, 2]
        await pilot.resize_terminal(200, 60)
        await pilot.pause()
        assert [panel.NUMBER for panel in screen.panels.all if panel.display] == [1, 2, 3, 4, 5, 6]
        await pilot.resize_terminal(40, 10)
        await pilot.pause()
        assert len([panel for panel in screen.panels.all if panel.display]) == 1


async def test_a_market_of_200_clients_and_20_services(app: MarketApp, play_small: Play, scenario_text: str) -> None:
    head, first, *_ = scenario_text.split("[[services]]")
    services = "".join("[[services]]" + first.replace('"alpha"', f'"service-{m}"') for m in range(20))
    text = (
        head.replace("count = 8", "count = 200").replace("cores = 1", "cores = 3").replace("rounds = 12", "rounds = 3")
    )
    async with watching(app, play_small(text + services)) as (pilot, screen):
        await pilot.press("3", "ctrl+end")
        grid = screen.query_one(ClientGrid)
        assert grid.cursor == 199
        assert grid.scroll_offset.y > 150
        await hold(pilot, "right", 19)
        assert grid.column == 19
        assert screen.query_one(BookPanel).target.count == 200


async def test_a_fork_says_how_far_it_has_replayed_what_it_shares(app: MarketApp, play_small: Play) -> None:
    whole, fork = play_small(), play_small(rounds=2, state=RunState.RUNNING)
    fork.hurry = 4  # it differs from round 5 on
    async with watching(app, fork) as (pilot, screen):
        assert "replaying round 3 of the 4 shared with the original" in status(screen)
        for number, words in ((3, "replaying round 4 of the 4"), (4, "services take part")):
            fork.add(whole.history[number].text)
            await until(pilot, lambda words=words: words in status(screen), "the round")  # type: ignore[misc]


async def test_services_are_counted_that_took_part_in_the_round_shown(app: MarketApp, play_small: Play) -> None:
    session = play_small()
    left = session.history.exits[0]
    async with watching(app, session) as (_, screen):
        for number, count in ((left, 3), (left + 1, 2)):
            screen.head.seek(session.history, number)
            screen.draw()
            assert f" {count} of 3 services take part" in status(screen)


@pytest.mark.parametrize("error", ["{0}: cannot be replayed: no round 3 in offers.csv", "no data\nlog: {0}/run.log"])
async def test_the_reason_of_a_failure_is_seen_at_80_columns(app: MarketApp, play_small: Play, error: str) -> None:
    session = play_small(state=RunState.FAILED)
    session.directory = Path("/home/somebody/experiments/runs/quickstart-00000000/as-configured/seed-0001")
    session.error = error.format(session.directory)
    async with watching(app, session, (80, 24)):
        assert error.partition("\n")[0].removeprefix("{0}: ") in painted(app)
        assert "…" not in painted(app).splitlines()[1]


async def test_a_run_without_rounds_says_in_full_why(app: MarketApp, play_small: Play) -> None:
    session = play_small(rounds=0, state=RunState.FAILED)
    session.error = "data set 'emnist-digits': /data/EMNIST/raw lacks some files; fetch them where there is a network"
    async with watching(app, session, (80, 24)) as (_, screen):
        assert not screen.panels.display
        assert session.error in " ".join(painted(app).split())


async def test_maximising_is_offered_where_panels_stand_side_by_side(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small(), (120, 40)) as (pilot, _):
        assert "m Max" in painted(app)
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: "m Max" not in painted(app), "one panel at a time")
        await pilot.resize_terminal(120, 40)
        await until(pilot, lambda: "m Max" in painted(app), "side by side again")


@pytest.mark.parametrize("state", [RunState.RUNNING, RunState.COMPLETE])
async def test_at_80_columns_the_status_cuts_no_number(app: MarketApp, play_small: Play, state: RunState) -> None:
    session = play_small(state=state)
    session.speed = 5.0
    session.pace.rate = lambda: 4.86  # type: ignore[method-assign]
    async with watching(app, session, (80, 24)):
        first, second = painted(app).splitlines()[:2]
        assert second.rstrip().endswith("spent")
        assert " left " in first if state is RunState.RUNNING else " 7: summary " in first


async def test_what_is_left_goes_by_the_speed_that_was_just_chosen(
    app: MarketApp, play_small: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = play_small(rounds=4, state=RunState.RUNNING)
    session.pace.rate = lambda: 5.0  # type: ignore[method-assign]
    monkeypatch.setattr(app.runs, "steerable", lambda _: True)
    async with watching(app, session) as (_, screen):
        session.speed = 0.25
        screen.draw()
        assert "0.25 rounds/s (F: full speed), now 0.25/s, at most 32 s left" in status(screen)


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


async def test_home_and_end_move_the_cursor_inside_the_filter(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        await pilot.press("home", "right", "right", "5", "slash", *"bid")
        field = screen.query_one("#event-filter", Input)
        await pilot.press("home")
        assert (screen.head.round, field.cursor_position) == (3, 0)
        await pilot.press("end")
        assert (screen.head.round, screen.head.following, field.cursor_position) == (3, False, 3)
        await pilot.press("enter", "home")
        assert screen.head.round == 1


async def test_beside_the_clients_the_order_book_tells_of_the_chosen_cell(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        book = screen.query_one(BookPanel)
        await pilot.press("home", "3", "down", "down", "right")
        told = screen.view.book.line(1, 2)
        await until(pilot, lambda: book.target.bid(book.target.cursor) == told)
        assert "beta" in str(book.query_one(GrowingText).render())
        assert "client 2" in str(book.query_one(GrowingText).render())


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_enter_in_the_clients_goes_to_the_line_in_the_order_book(
    app: MarketApp, play_small: Play, size: tuple[int, int]
) -> None:
    async with watching(app, play_small(), size) as (pilot, screen):
        book = screen.query_one(BookPanel)
        await pilot.press("home", "3", "down", "down", "down", "right", "enter")
        await until(pilot, lambda: book.target.has_focus and book.target.count == 8, "the order book")
        await until(pilot, lambda: screen.selected == (1, 3), "the cell")
        assert "beta" in str(book.border_title)
        await until(pilot, lambda: str(book.target.cell(book.target.cursor, "who")) == "3", "the line")
        assert "beta made client 3 no offer: " in str(screen.query_one("#book-reason", Static).render())


def refused(screen: MarketScreen) -> list[tuple[int, int]]:
    """Service and client of each refused offer of the round."""
    book = screen.view.book
    assert book is not None
    return [(m, c) for m in range(3) for c in range(book.clients) if book.verdict(m, c) is BidVerdict.OUTBID]


async def test_enter_on_a_client_explains_the_refusal_that_its_row_shows(app: MarketApp, play_small: Play) -> None:
    """The cell under the cursor is that of another service, which has left."""
    session = play_small()
    left = session.history.exits[0]
    conflict = next(number for number in session.history.conflicts if number > left)
    async with watching(app, session) as (pilot, screen):
        screen.head.seek(session.history, conflict)
        screen.draw()
        service, client = refused(screen)[0]
        assert service != 0
        await pilot.press("3", *["down"] * client, "enter")
        book = screen.query_one(BookPanel)
        name = session.history[1].services[service].service
        await until(
            pilot,
            lambda: (
                f"{name} did not get client {client}: outbid by"
                in str(screen.query_one("#book-reason", Static).render())
            ),
        )
        assert name in str(book.border_title)


async def test_the_next_conflict_shows_the_book_of_a_refused_offer(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        await pilot.press("home")
        for _ in screen.session.history.conflicts[1:]:
            await pilot.press("o")
            assert screen.selected in refused(screen)
            assert BidVerdict.OUTBID.value in str(screen.query_one("#book-reason", Static).render())


async def test_the_book_of_a_service_that_left_says_so(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        left = screen.session.history.exits[0]
        await pilot.press("end", "w", "4", "w")
        book = screen.query_one(BookPanel)
        assert book.target.count == 0
        words = f"alpha left in round {left}"
        assert words in str(book.border_title)
        assert str(screen.query_one("#book-reason", Static).render()) == f"{words}, having reached its target"


async def test_a_service_chosen_among_the_services_gets_its_book_back(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        await pilot.press("home", "b")
        book = screen.query_one(BookPanel)
        assert "client 0" in str(book.border_title)
        await pilot.press("1", "down")
        await until(pilot, lambda: "beta" in str(book.border_title), "the service's book")


async def test_left_and_right_choose_a_service_in_the_clients_and_seek_in_the_order_book(
    app: MarketApp, play_small: Play
) -> None:
    async with watching(app, play_small(), (120, 40)) as (pilot, screen):
        await pilot.press("home", "3", "right", "right", "left")
        assert (screen.head.round, screen.selected[0]) == (1, 1)
        await pilot.press("4", "right", "right")
        assert screen.head.round == 3
        await pilot.press("left")
        assert screen.head.round == 2
        assert screen.query_one(BookPanel).target.scroll_x == 0


def notes(app: MarketApp) -> list[str]:
    return [note.message for note in app._notifications]


async def test_a_key_that_does_nothing_says_why_and_only_once(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        for keys, words in (
            (["right", "s", "right"], "Round 12 is the newest."),
            (["home", "left", "left"], "Round 1 is the first."),
            (["plus", "plus"], "There is no higher speed."),
            (["minus"] * 9, "There is no lower speed."),
        ):
            app.clear_notifications()
            await pilot.press(*keys)
            assert notes(app) == [words]
    assert screen.session.speed == 0.25


@pytest.mark.parametrize(("state", "words"), [(RunState.STARTING, "There is no round yet."),
                                              (RunState.FAILED, "No round was played.")])  # fmt: skip
async def test_a_key_that_needs_a_round_says_that_there_is_none(
    app: MarketApp, play_small: Play, state: RunState, words: str
) -> None:
    async with watching(app, play_small(rounds=0, state=state)) as (pilot, screen):
        for key in ("space", "s", "e", "E", "left", "right"):
            app.clear_notifications()
            await pilot.press(key)
            assert notes(app) == [words], key
        await pilot.press("home", "n", "o", "v", "b", "i", "x", "m", "m")
        assert screen.head.round == 0


async def test_a_key_for_a_panel_that_is_not_shown_uncovers_it(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small(), (80, 24)) as (pilot, screen):
        await pilot.press("3", "v")
        assert screen.panels.active == 2
        assert screen.query_one(CurvesPanel).metric == "reward"
        await pilot.press("b")
        assert screen.panels.active == 4
        assert screen.query_one(BookPanel).by_client


async def test_until_the_first_round_the_screen_shows_what_the_run_is_about_to_play(
    app: MarketApp, play_small: Play
) -> None:
    session = play_small(rounds=0, state=RunState.STARTING)
    session.open_with("reading digits")
    session.open_with("building the market and its models")
    async with watching(app, session, (80, 24)) as (pilot, screen):
        opening = screen.query_one(StartSteps)
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


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (RunState.STARTING, "loading data and models"),
        (RunState.PAUSED, "paused before the first round: space plays the run, s one round"),
        (RunState.RUNNING, "playing the first round"),
        (RunState.INCOMPLETE, "waiting for the first round of another process"),
        (RunState.INTERRUPTED, "no round was played"),
        (RunState.WAITING, "waits until a core is free; it begins when one of the runs that play ends"),
    ],
)
async def test_before_the_first_round_the_status_says_what_the_run_waits_for(
    app: MarketApp, play_small: Play, state: RunState, words: str
) -> None:
    async with watching(app, play_small(rounds=0, state=state)) as (_, screen):
        assert status(screen).endswith(f"\n {words}")
