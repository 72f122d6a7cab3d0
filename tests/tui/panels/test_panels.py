"""Panels of the market: what all share, the order book, and the answers to W and B."""

import re
from pathlib import Path

import pytest
from rich.color import Color
from textual.pilot import Pilot
from textual.widgets import Static

import tui.screens.market
from des.log_records import Kind, Outcome
from support.screens import Play, painted, rendered, until, watching
from tui.app import MarketApp
from tui.panels.answers import AnswerPanel, BestLines, WhyTable
from tui.panels.client_grid import ClientGrid
from tui.panels.event_log import EventLines, EventsPanel
from tui.panels.gantt import CoreLines
from tui.panels.layout import PANELS
from tui.panels.order_book import BookPanel, BookTable, GrowingText
from tui.panels.panel import Panel
from tui.panels.price_bars import REFUSED, SERVED
from tui.panels.services import ServicesTable
from tui.screens.market import MarketScreen
from tui.state.bid_verdicts import ORDER, BidVerdict
from tui.style.colors import series_color, sign
from tui.style.sentences import event_words


def said(screen: MarketScreen) -> str:
    return str(screen.query_one(AnswerPanel).query_one(GrowingText).render())


def listed(screen: MarketScreen) -> list[str]:
    lines = screen.query_one(BestLines)
    return [lines.line(index)[1].plain for index in range(lines.count)]


async def refused_offer(pilot: Pilot[None], screen: MarketScreen) -> tuple[int, int]:
    """Go to a round in which an offer was outbid; return its service and client, which are chosen."""
    await pilot.press("home", "]", "o")
    assert screen.view.mark(*screen.selected) == BidVerdict.OUTBID.value
    return screen.selected


async def test_w_says_who_won_the_client_and_b_what_more_would_have_bought(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        service, client = await refused_offer(pilot, screen)
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
        await refused_offer(pilot, screen)
        screen.selected = (1, 0)
        await pilot.press("B")
        await until(pilot, lambda: listed(screen))
        book = screen.view.book
        best, got = book.best(1), book.quality(1)
        assert f"with a DQI of {best.quality:.4f} ({best.quality - got:+.4f}) for " in said(screen)
        sums = {line[:30].strip(): line.split() for line in listed(screen)}
        assert f"{got:.4f}" in sums["what it got"]
        assert f"{book.best(1, cores=1).quality:.4f}" in sums["one more core for each client"]
        twice = book.best(1, budget=book.logged.services[1].budget)
        assert f"{twice.quality:.4f}" in sums["twice the budget"]
        assert screen.query_one(ServicesTable).cell(1, "left").plain == f"{best.quality - got:.2f}"
        clients = [line.split() for line in listed(screen) if re.match(r" \S? +\d+ ", line)]
        missed = {int(words[1]) for words in clients if words[0] == "+"}
        needless = {int(words[1]) for words in clients if words[0] == "\N{MINUS SIGN}"}
        assert missed == set(best.clients.tolist()) - book.served(1).keys()
        assert needless == book.served(1).keys() - set(best.clients.tolist())


async def test_each_choice_is_answered_beside_the_panels_and_in_a_small_terminal(
    app: MarketApp, play_small: Play
) -> None:
    async with watching(app, play_small(), (120, 40)) as (pilot, screen):
        await pilot.press("home", "4", "W")
        panel = screen.query_one(AnswerPanel)
        await until(pilot, lambda: screen.query_one(WhyTable).has_focus)
        assert not screen.query_one(EventsPanel).display
        await pilot.press("4")
        for _ in range(3):
            await pilot.press("down")
            await until(pilot, lambda: f"why client {screen.selected[1]} serves" in str(panel.border_title))
        await pilot.press("5")
        assert not panel.display
        await pilot.resize_terminal(80, 24)
        screen.selected = (0, 0)
        await pilot.pause()
        await pilot.press("W")
        await until(pilot, lambda: screen.query_one(WhyTable).has_focus)
        await pilot.press("v")
        await until(pilot, lambda: screen.query_one(BestLines).has_focus)
        assert "the best set of alpha" in str(screen.query_one(AnswerPanel).border_title)


AS_A_SET = """
[market]
data = "public"

[[interventions]]
round = 1
key = "services.alpha.policy"
value = { policy = "greedy", policy_options = { together = "union" } }
"""


OFFLINE = """
[[interventions]]
round = 2
key = "clients.offline"
value = [0]
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "keys", "words"),
    [
        ('\n[market]\nmechanism = "uniform-price"\n', "o B", "is worked out for pay-as-offered"),
        ('\n[market]\nmechanism = "uniform-price"\n', "o W", "; the mechanism uniform-price decides for "),
        (AS_A_SET, "o B", "alpha values clients as a set: "),
        ("", "B e", "is shown once the round is over"),
        ("", "end B", "alpha left in round "),
        (OFFLINE, "] 3 down up W", "is offline in this round"),
    ],
)
async def test_where_there_is_no_answer_it_says_why(
    app: MarketApp, play_small: Play, scenario_text: str, more: str, keys: str, words: str
) -> None:
    async with watching(app, play_small(scenario_text + more)) as (pilot, screen):
        await pilot.press("home", *keys.split())
        await until(pilot, lambda: words in said(screen), words)
        assert "B" not in keys or not listed(screen)


@pytest.mark.slow
async def test_esc_closes_the_answers_and_leads_back_to_where_one_asked(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small(), (80, 24)) as (pilot, screen):
        for size in ((80, 24), (120, 40)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            await pilot.press("home", "3", "down", "W")
            await until(pilot, lambda: screen.query_one(AnswerPanel).display)
            assert "esc Close" in painted(app)
            await pilot.press("escape")
            assert app.screen is screen
            assert not screen.query_one(AnswerPanel).display
            assert screen.query_one(EventsPanel).display == (size[0] == 120)
            assert screen.query_one(ClientGrid).has_focus
            await pilot.press("8", "escape")  # the focus was in it
            assert screen.query_one(ClientGrid).has_focus
        await pilot.press("escape")
        assert app.screen is not screen


STYLES = Path(tui.screens.market.__file__).with_name("market.tcss").read_text()


def test_a_panel_stands_at_the_place_of_its_number() -> None:
    assert [panel.NUMBER for panel in PANELS] == list(range(1, len(PANELS) + 1))


@pytest.mark.parametrize("panel", PANELS)
def test_a_panel_has_a_name_a_help_a_key_and_a_part_of_the_grid(panel: type[Panel]) -> None:
    assert panel.NAME
    assert panel.HELP
    keys = {binding.key: binding.action for binding in tui.screens.market.MarketScreen.BINDINGS}
    assert keys[str(panel.NUMBER)] == f"panel({panel.NUMBER})"
    assert f"\n{panel.__name__} {{ column-span: " in STYLES


def test_a_panel_that_takes_the_place_of_others_is_as_wide_as_they_are() -> None:
    spans = {panel: int(re.findall(rf"\n{panel.__name__} {{ column-span: (\d+)", STYLES)[0]) for panel in PANELS}
    for panel in PANELS:
        behind = [other for other in PANELS if other.NUMBER in panel.INSTEAD]
        assert not behind or spans[panel] == sum(spans[other] for other in behind)


@pytest.mark.slow
async def test_the_order_book_gives_reasons_and_follows_what_is_chosen(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        book = screen.query_one(BookPanel)
        table = book.target
        # The book of a service that left says so.
        left = screen.session.history.exits[0]
        await pilot.press("end", "w", "4", "w")
        assert table.count == 0
        words = f"alpha left in round {left}"
        assert words in str(book.border_title)
        assert rendered(screen, "#book-reason") == f"{words}, having reached its target"
        # It follows what is chosen and gives reasons.
        screen.selected = (0, 0)
        await pilot.press("w", "home", "o", "1", "down")
        assert screen.selected[0] == 1
        assert "beta" in str(book.border_title)
        assert table.count == 8
        whys = " ".join(str(table.cell(c, "why")) for c in range(8))
        assert "core 0, paid its bid" in whys
        assert "does not fit the remaining budget" in whys
        everything = " ".join(screen.view.book.line(m, client).reason for m in range(3) for client in range(8))
        assert " < " in everything or "lost the draw" in everything
        await pilot.press("b")
        assert book.by_client
        assert table.count == 3
        await pilot.press("3", "ctrl+home", "down", "down", "enter")
        assert screen.selected == (1, 2)
        assert "client 2" in str(book.border_title)
        await pilot.press("b")
        assert not book.by_client
        # The book begins with what happened and may leave out the rest.
        screen.selected = (0, 0)
        await pilot.press("home", "o", "4")
        lines = [table.bid(row) for row in range(table.count)]
        ranks = [ORDER.index(line.verdict) for line in lines if line]
        assert len(ranks) == 8
        assert ranks == sorted(ranks)
        assert "4 Order book · alpha, 0.00 of 10.00 left" in str(book.border_title)
        await pilot.press("w")
        offered = screen.view.logged.services[0].wanted
        assert 0 < table.count == offered < 8
        assert all(line.payment is not None for row in range(offered) if (line := table.bid(row)))
        assert "only offers" in str(book.border_title)
        await pilot.press("w")
        assert table.count == 8
        # The cursor of the book stays on its client.
        screen.selected = (0, 0)
        await pilot.press("home", "4", "down", "down", "down")
        client = table.bid(table.cursor).client
        assert screen.selected[1] == client
        for _ in range(4):
            await pilot.press("]")
            assert table.bid(table.cursor).client == client
        # In a walk bars and rivals come with decisions and are solid once served.
        screen.selected = (0, 0)
        await pilot.press("home", "o", "4", "b")
        events = screen.view.events

        def drawn() -> str:
            return "".join(table.line(row)[1].plain for row in range(table.count))

        assert SERVED in drawn()
        assert REFUSED in drawn()
        decisions = [place for place, event in enumerate(events) if event.event is Kind.DECISION]
        for happened, found in ((decisions[0], ""), (decisions[-1] + 1, REFUSED), (len(events), REFUSED + SERVED)):
            screen.head.event = happened
            screen.draw()
            assert {mark for mark in SERVED + REFUSED if mark in drawn()} == set(found)
        # The book is sorted by a click on a column.
        await pilot.press("b", "home")
        await pilot.click(table, offset=(12, 0))
        bids = [float(str(table.cell(i, "bid"))) for i in range(8)]
        assert bids == sorted(bids)
        # The bars have the room and quality and reasons follow where there is more.
        await pilot.press("home", "4")
        assert re.search(r"bid +offer +0 .* DQI +D ", painted(app))
        assert "DQI" in rendered(screen, "#book-reason")
        await pilot.press("m")
        await pilot.pause()
        assert re.search(r"bid +wins at +offer +0.* DQI +D +EMD +why", painted(app))


def refused(screen: MarketScreen) -> list[tuple[int, int]]:
    """Service and client of each refused offer of the round."""
    book = screen.view.book
    return [(m, c) for m in range(3) for c in range(book.clients) if book.verdict(m, c) is BidVerdict.OUTBID]


@pytest.mark.slow
async def test_what_is_chosen_elsewhere_has_its_line_in_the_order_book(app: MarketApp, play_small: Play) -> None:
    session = play_small()
    left = session.history.exits[0]
    conflict = next(number for number in session.history.conflicts if number > left)
    async with watching(app, session) as (pilot, screen):
        # Beside the clients the order book tells of the chosen cell.
        book = screen.query_one(BookPanel)
        await pilot.press("home", "3", "down", "down", "right")
        told = screen.view.book.line(1, 2)
        await until(pilot, lambda: book.target.bid(book.target.cursor) == told)
        assert "beta" in str(book.query_one(GrowingText).render())
        assert "client 2" in str(book.query_one(GrowingText).render())
        # The next conflict shows the book of a refused offer.
        await pilot.press("home")
        for _ in screen.session.history.conflicts[1:]:
            await pilot.press("o")
            assert screen.selected in refused(screen)
            assert BidVerdict.OUTBID.value in rendered(screen, "#book-reason")
        # A service chosen among the services gets its book back.
        screen.selected = (0, 0)
        await pilot.press("home", "b")
        assert "client 0" in str(book.border_title)
        await pilot.press("1", "down")
        await until(pilot, lambda: "beta" in str(book.border_title), "the service's book")
        # Enter on a client explains the refusal that its row shows, also below a cell of a service that has left.
        screen.selected = (0, 0)
        await pilot.press("3", "ctrl+home", "left", "left")
        screen.head.seek(session.history, conflict)
        screen.draw()
        service, client = refused(screen)[0]
        assert service != 0
        await pilot.press("3", *["down"] * client, "enter")
        name = session.history[1].services[service].service
        reason = screen.query_one("#book-reason", Static)
        await until(pilot, lambda: f"{name} did not get client {client}: outbid by" in str(reason.render()))
        assert name in str(book.border_title)
        # Enter in the clients goes to the line in the order book.
        for size in ((160, 48), (80, 24)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            await pilot.press("home", "3", "ctrl+home", "left", "left", "down", "down", "down", "right", "enter")
            await until(pilot, lambda: book.target.has_focus and book.target.count == 8, "the order book")
            await until(pilot, lambda: screen.selected == (1, 3), "the cell")
            assert "beta" in str(book.border_title)
            await until(pilot, lambda: str(book.target.cell(book.target.cursor, "who")) == "3", "the line")
            assert "beta made client 3 no offer: " in str(reason.render())


@pytest.mark.parametrize("width", [120, 160])
async def test_a_sign_or_a_name_stands_where_a_service_has_its_colour(
    app: MarketApp, play_small: Play, width: int
) -> None:
    async with watching(app, play_small(), (width, 40)) as (pilot, screen):
        await pilot.press("home")
        rows = screen.view.logged.services
        colors = {Color.parse(series_color(m)).triplet: (m, row.service) for m, row in enumerate(rows)}
        for panel in (ServicesTable, BookTable, EventLines, CoreLines):
            found, view = set(), screen.query_one(panel)
            title = str(screen.query_one(BookPanel).border_title) if panel is BookTable else ""  # whose book it is
            for index in range(view.count):
                parts = [segment for part in view.line(index) for segment in view._segments(part)]
                words = "".join(text for text, _, _ in parts)
                if panel is EventLines:  # a sentence may go on in the next line
                    words = event_words(view.events[view._lines[index]])
                for text, style, _ in parts:
                    if style is not None and style.color is not None and style.color.triplet in colors:
                        place, name = colors[style.color.triplet]
                        found.add(place)
                        signs = {text.strip(), *words.split()}
                        assert sign(place) in signs or name in f"{title} {words}", (panel.__name__, words)
            assert found, panel.__name__


async def test_a_core_is_in_use_also_where_the_update_did_not_arrive(
    app: MarketApp, play_small: Play, scenario_text: str
) -> None:
    text = scenario_text.replace("cores = 1\n", "cores = 1\ndeparture_rate = 0.5\n")
    async with watching(app, play_small(text)) as (pilot, screen):
        dropped = next(
            (logged.number, offer.client)
            for logged in screen.session.history
            for offer in logged.offers
            if offer.outcome is Outcome.DROPPED
        )
        await pilot.press("g", *str(dropped[0]), "enter", "3", "ctrl+home", *["down"] * dropped[1])
        grid = screen.query_one(ClientGrid)
        assert grid.line(dropped[1])[0].plain.split()[:2] == [str(dropped[1]), "1/1"]
        await pilot.press("b")
        assert f"client {dropped[1]}, 1 of 1 cores in use" in str(screen.query_one(BookPanel).border_title)
