"""The answers to W and B: a sentence, a table and bars, which agree with the log, and give away nothing in a walk."""

import re
from collections.abc import Callable

import pytest
from textual.pilot import Pilot

from support.screens import painted, until, watching
from tui.app import MarketApp
from tui.panels.answers import AnswerPanel, BestLines, WhyTable
from tui.panels.client_grid import ClientGrid
from tui.panels.event_log import EventsPanel
from tui.panels.order_book import BookPanel, GrowingText
from tui.screens.market import MarketScreen
from tui.state.bid_verdicts import BidVerdict
from tui.state.watched_run import Session

Play = Callable[..., Session]


def said(screen: MarketScreen) -> str:
    return str(screen.query_one(AnswerPanel).query_one(GrowingText).render())


def listed(screen: MarketScreen) -> list[str]:
    lines = screen.query_one(BestLines)
    return [lines.line(index)[1].plain for index in range(lines.count)]


async def refused(pilot: Pilot[None], screen: MarketScreen) -> tuple[int, int]:
    """Go to a round in which an offer was outbid; return its service and client, which are chosen."""
    await pilot.press("home", "]", "o")
    assert screen.view.mark(*screen.selected) == BidVerdict.OUTBID.value
    return screen.selected


async def test_w_says_who_won_the_client_and_what_would_have(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        service, client = await refused(pilot, screen)
        await pilot.press("W")
        await until(pilot, lambda: "the highest payment wins" in said(screen))
        [holder] = screen.view.book.holders[client]
        name = screen.view.logged.services[service].service
        assert said(screen).startswith(f"Client {client} has 1 core and ")
        assert f": {holder.service} ({holder.payment / 1e6:.2f}). {name} did not get client {client}: " in said(screen)
        price = screen.view.book.price(service, client)
        assert price == holder.payment + 1
        assert f" {price / 1e6:.6f} wins client {client} for {name} for sure." in said(screen)
        table = screen.query_one(WhyTable)
        assert table.count == 3
        assert table.bid(table.cursor) == screen.view.book.line(service, client)


async def test_side_by_side_the_focus_stays_and_the_next_choice_is_answered(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        await pilot.press("home", "4", "W")
        book, panel = screen.query_one(BookPanel), screen.query_one(AnswerPanel)
        await until(pilot, lambda: panel.display and book.target.has_focus)
        assert not screen.query_one(EventsPanel).display
        for _ in range(3):
            await pilot.press("down")
            await until(pilot, lambda: f"why client {screen.selected[1]} serves" in str(panel.border_title))
        await pilot.press("5")
        assert not panel.display


async def test_alone_on_the_screen_it_has_the_focus(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small(), (80, 24)) as (pilot, screen):
        await pilot.press("W")
        await until(pilot, lambda: screen.query_one(WhyTable).has_focus)
        await pilot.press("v")
        await until(pilot, lambda: screen.query_one(BestLines).has_focus)
        assert "the best set of alpha" in str(screen.query_one(AnswerPanel).border_title)


async def test_b_shows_the_best_set_and_what_more_would_have_bought(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        await refused(pilot, screen)
        screen.selected = (1, 0)
        await pilot.press("B")
        await until(pilot, lambda: listed(screen))
        book = screen.view.book
        best, got = book.best(1), book.quality(1)
        assert f"with a DQI of {best.quality:.4f} ({best.quality - got:+.4f}) for " in said(screen)
        sums = {line[:30].strip(): line.split() for line in listed(screen)}
        assert f"{got:.4f}" in sums["what it got"]
        assert f"{book.best(1, cores=1).quality:.4f}" in sums["one more core for each client"]
        clients = [line.split() for line in listed(screen) if re.match(r" \S? +\d+ ", line)]
        missed = {int(words[1]) for words in clients if words[0] == "+"}
        needless = {int(words[1]) for words in clients if words[0] == "\N{MINUS SIGN}"}
        assert missed == set(best.clients.tolist()) - book.served(1).keys()
        assert needless == book.served(1).keys() - set(best.clients.tolist())


@pytest.mark.parametrize(
    ("more", "keys", "words"),
    [
        ('\n[market]\nmechanism = "uniform-price"\n', "o B", "is worked out for pay-as-offered"),
        ('\n[market]\nmechanism = "uniform-price"\n', "o W", "; the mechanism uniform-price decides for "),
        ("", "B e", "is shown once the round is over"),
        ("", "end B", "alpha left in round "),
        ('\n[[interventions]]\nround = 2\nkey = "clients.offline"\nvalue = [0]\n', "] W", "is offline in this round"),
    ],
)
async def test_where_there_is_no_answer_it_says_why(
    app: MarketApp, play_small: Play, scenario_text: str, more: str, keys: str, words: str
) -> None:
    async with watching(app, play_small(scenario_text + more)) as (pilot, screen):
        await pilot.press("home", *keys.split())
        await until(pilot, lambda: words in said(screen), words)
        assert not listed(screen)


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_esc_closes_the_answers_and_leads_back_to_where_one_asked(
    app: MarketApp, play_small: Play, size: tuple[int, int]
) -> None:
    async with watching(app, play_small(), size) as (pilot, screen):
        await pilot.press("home", "3", "down", "W")
        await until(pilot, lambda: screen.query_one(AnswerPanel).display)
        assert "esc Close" in painted(app)
        await pilot.press("escape")
        assert app.screen is screen
        assert not screen.query_one(AnswerPanel).display
        assert screen.query_one(EventsPanel).display == (size[0] == 160)
        assert screen.query_one(ClientGrid).has_focus
        await pilot.press("8", "escape")  # the focus was in it
        assert screen.query_one(ClientGrid).has_focus
        await pilot.press("escape")
        assert app.screen is not screen
