"""One selection: the service, the client and the round that are chosen anywhere are those of all panels."""

import pytest
from rich.style import Style

from support.screens import Play, until, watching
from tui.app import MarketApp
from tui.panels.answers import BestLines, WhyTable
from tui.panels.client_grid import ClientGrid
from tui.panels.event_log import EventLines
from tui.panels.gantt import CoreLines
from tui.panels.order_book import BookPanel
from tui.panels.rivalry import Earnings, Money, RivalryLines, RivalsPage, SummaryPage
from tui.panels.services import ServicesTable
from tui.screens.market import MarketScreen
from tui.style.colors import BAR
from tui.widgets.line_view import LineView
from tui.widgets.zoom import ZoomPlot


def barred(view: LineView) -> list[int]:
    """The lines that are marked as chosen, of those in sight."""
    view.render_lines(view.size.region)  # which looks up what the lines need
    rows = range(view.HEADER, view.size.height)
    return [y - view.HEADER + view.scroll_offset.y for y in rows if view.render_line(y).text.startswith(BAR)]


def tinted(view: LineView) -> list[int]:
    """The lines with a background of their own: those on which the keys act."""
    view.render_lines(view.size.region)
    backgrounds = {
        y: {(style or Style()).bgcolor for _, style, _ in view.render_line(y)}
        for y in range(view.HEADER, view.size.height)
    }
    own = [y for y, colors in backgrounds.items() if not colors <= {view.rich_style.bgcolor, None}]
    return [y - view.HEADER + view.scroll_offset.y for y in own]


def check(screen: MarketScreen) -> None:
    """Look for what is chosen in all panels that are shown."""
    view, (service, client) = screen.view, screen.selected
    names = [row.service for row in view.logged.services]
    assert barred(screen.query_one(ServicesTable)) == [service]
    curves = screen.query_one("#curve-area ZoomPlot", ZoomPlot).curves
    assert [curve.name for curve in curves if curve.rank > 1] == [names[service]]
    grid, book = screen.query_one(ClientGrid), screen.query_one(BookPanel)
    assert (barred(grid), grid.column) == ([client], service)
    assert [book.target.bid(row) for row in barred(book.target)] == [view.book.line(service, client)]
    events, cores, lines = (screen.query_one(kind) for kind in (EventLines, CoreLines, RivalryLines))
    if screen.panels.all[4].display:
        places = {events._lines[line] for line in barred(events)}
        assert {events.events[place].client for place in places} == {client}
        assert {cores._cores[line][0].client for line in barred(cores)} <= {client}
    if screen.panels.all[6].display:
        marked = [lines._at(row) for row in barred(lines)]
        assert all(place == page.place(view) for page, place in marked)
        assert marked or isinstance(lines.pages[0], SummaryPage)
    if screen.panels.all[7].display:
        why, best = screen.query_one(WhyTable), screen.query_one(BestLines)
        assert not why.display or [why.bid(row) for row in barred(why)] == [view.book.line(service, client)]
        assert not best.display or {best._lines[row][1] for row in barred(best)} <= {client}


@pytest.mark.slow
@pytest.mark.parametrize("size", [(120, 40), (160, 48), (200, 60)])
async def test_what_is_chosen_in_one_panel_is_chosen_in_all(
    app: MarketApp, play_small: Play, size: tuple[int, int]
) -> None:
    async with watching(app, play_small(), size) as (pilot, screen):
        lines = screen.query_one(RivalryLines)
        await pilot.press("home", "]", "o")
        check(screen)
        for keys in (
            "1 down",
            "1 down",
            "1 up",
            "3 up up",
            "3 right",
            "4 up up",
            "4 down",
            "4 b up",
            "b",
            "5 down down down down down down down down down down",
            "6 ctrl+home down",
            "6 down",
            "]",
            "[ [",
            "W up",
            "B",
            "ctrl+end up",
        ):
            before = screen.selected, screen.head.round
            await pilot.press(*keys.split())
            check(screen)
            assert before != (screen.selected, screen.head.round) or keys in {"b", "B", "ctrl+end up"}, keys
        await pilot.press("7")
        for page in (RivalsPage, Money, Earnings):
            while not isinstance(lines.pages[0], page):
                await pilot.press("v")
            found = set()
            for key in ("up", "down", "up", "up"):
                await pilot.press(key)
                check(screen)
                found.add(screen.selected)
            assert len(found) > 1
        await pilot.press("home", "o", "o")  # to another round, with what was lost there
        check(screen)


async def test_a_line_that_is_only_highlighted_does_not_look_chosen(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small(), (120, 40)) as (pilot, screen):
        await pilot.press("home")
        grid, book = screen.query_one(ClientGrid), screen.query_one(BookPanel).target
        lists = (grid, book, screen.query_one(EventLines), screen.query_one(CoreLines))
        assert screen.selected == (0, None)
        for number, view in zip((3, 4, 5, 6), lists, strict=True):  # as long as no client is chosen
            await pilot.press(str(number))
            assert [barred(each) for each in lists] == [[]] * 4
            assert tinted(view) == [view.cursor]
        await pilot.press("4", "down")
        chosen = screen.selected[1]
        assert barred(book) == tinted(book) == [1]
        assert barred(grid) == [chosen]
        assert not tinted(grid)
        # One without an offer is still the chosen one where only offers are listed: none of these looks like it.
        without = next(c for c in range(8) if screen.view.book.offer(0, c) is None)
        screen.selected = (0, without)
        screen.draw()
        await pilot.press("w")
        assert book.count < 8
        assert not barred(book)
        await pilot.press("]", "[")
        assert screen.selected == (0, without)
        await pilot.press("w")
        assert [book.bid(row).client for row in barred(book)] == [without]


async def test_a_question_leads_to_its_answer_and_is_about_a_lost_client_if_none_is_chosen(
    app: MarketApp, play_small: Play
) -> None:
    async with watching(app, play_small(), (160, 48)) as (pilot, screen):
        await pilot.press("home", "o")
        lost = screen.selected
        await pilot.press("B")
        await until(pilot, lambda: screen.query_one(BestLines).has_focus)
        await pilot.press("W")
        await until(pilot, lambda: screen.query_one(WhyTable).has_focus)
        await pilot.press("escape")
        assert screen.query_one(ServicesTable).has_focus
        screen.selected = (lost[0], None)
        await pilot.press("W")
        assert screen.selected == lost
