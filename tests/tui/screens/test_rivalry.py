"""The rivalry panel and its summary, on the market screen."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from flmarket.core.text import counted
from scenarios.logs.run_state import RunState
from support.screens import hold, until, watching
from tui.app import MarketApp
from tui.panels.event_log import EventsPanel
from tui.panels.gantt import CoresPanel
from tui.panels.rivalry import PAGES, Earnings, Money, RivalryLines, RivalryPanel, RivalsPage, SummaryPage
from tui.panels.status_line import StatusLine
from tui.screens.market import MarketScreen
from tui.state.watched_run import Session

Play = Callable[..., Session]
TIMES = "\N{MULTIPLICATION SIGN}"
SIZES = [(80, 24), (120, 36), (200, 60)]


def shown(screen: MarketScreen) -> list[str]:
    """The lines of the page, as far as they scroll."""
    lines = screen.query_one(RivalryLines)
    pairs = [lines.head(), *map(lines.line, range(lines.count))]
    return [f"{label.plain}{words.plain}" for label, words in pairs]


def title(screen: MarketScreen) -> str:
    return str(screen.query_one(RivalryPanel).border_title)


@pytest.mark.parametrize("size", SIZES)
async def test_every_page_fits_its_panel(app: MarketApp, play_small: Play, size: tuple[int, int]) -> None:
    async with watching(app, play_small(), size) as (pilot, screen):
        await pilot.press("7")
        panel, lines = screen.query_one(RivalryPanel), screen.query_one(RivalryLines)
        assert lines.has_focus
        assert lines.size.width >= 66
        seen = []
        for _ in PAGES:
            seen.append(panel.kind)
            assert lines.virtual_size.width <= lines.size.width, panel.kind
            assert lines.count == len(shown(screen)) - 1 > 0
            await pilot.press("v")
        assert seen == [SummaryPage, RivalsPage, Money, Earnings]
        assert panel.kind is SummaryPage


@pytest.mark.parametrize("size", SIZES[1:])
async def test_it_takes_the_place_of_events_and_cores_while_it_is_shown(
    app: MarketApp, play_small: Play, size: tuple[int, int]
) -> None:
    async with watching(app, play_small(), size) as (pilot, screen):
        panel = screen.query_one(RivalryPanel)
        behind = [screen.query_one(EventsPanel), screen.query_one(CoresPanel)]
        room = behind[0].region.union(behind[1].region)
        assert not panel.display
        await pilot.press("7")
        assert panel.display
        assert not any(other.display for other in behind)
        assert panel.region == room
        await pilot.press("4")
        assert panel.display  # beside the order book
        await pilot.press("6")
        assert not panel.display
        assert all(other.display for other in behind)
        await pilot.press("7", "5")
        assert not panel.display
        assert behind[0].display


async def test_rivals_are_counted_up_to_the_round_that_is_shown(app: MarketApp, play_small: Play) -> None:
    session = play_small()
    first = session.history.conflicts[0]
    async with watching(app, session) as (pilot, screen):
        await pilot.press("home", "7")
        assert screen.query_one(RivalryPanel).kind is RivalsPage
        for _ in range(first, 11):
            await pilot.press("]")
        rows = shown(screen)
        assert title(screen) == f"7 Rivalry · who outbid whom, rounds 1 to {screen.head.round} (v: next page)"
        assert rows[0].split()[:2] == ["outbid", "→"]
        outbid = [
            offer
            for logged in list(session.history)[: screen.head.round]
            for offer in logged.offers
            if offer.outcome == "outbid"
        ]
        totals = [line.split()[-1] for line in rows[1:]]
        assert sum(int(total.rstrip(TIMES)) for total in totals if total != "·") == len(outbid) > 0
        cells = " ".join(rows[1:]).split()
        assert any(cell.endswith(TIMES) and after.startswith("+") for cell, after in pairwise(cells))


async def test_money_and_earnings(app: MarketApp, play_small: Play) -> None:
    session = play_small()
    spent = [sum(logged.services[m].spent for logged in session.history) / 1e6 for m in range(3)]
    async with watching(app, session) as (pilot, screen):
        await pilot.press("7", "v", "v")
        rows = shown(screen)
        assert rows[0].split() == ["service", "spent", "a", "point", "served", "refused", "not", "spent"]
        assert [line.split()[2] for line in rows[1:4]] == [f"{amount:.2f}" for amount in spent]
        assert rows[4].startswith("whole market")
        assert f"{sum(spent):.2f}" in rows[4]
        await pilot.press("v")
        assert shown(screen)[0].split() == ["client", "earned", "jobs", "8", "of", "8", "clients", "paid"]
        earned = [float(line.split()[1]) for line in shown(screen)[1:]]
        assert earned == sorted(earned, reverse=True)
        assert abs(sum(earned) - sum(spent)) < 0.05
        assert "Gini 0." in title(screen)
        await pilot.press("down", "enter")
        assert screen.selected[1] == int(shown(screen)[2].split()[0])


async def test_the_summary_leads_to_the_decisive_rounds(app: MarketApp, play_small: Play) -> None:
    session = play_small()
    exit_ = session.history.exits[0]
    async with watching(app, session) as (pilot, screen):
        assert "round 12/12  7: summary" in str(screen.query_one(StatusLine).render())
        await pilot.press("7")
        assert title(screen) == "7 Rivalry · summary: complete after round 12 (v: next page)"
        rows = shown(screen)
        assert rows[0].split() == ["service", "target", "met", "test", "accuracy", "%", "spent", "a", "point"]
        alpha, beta = (row.split() for row in rows[1:3])
        accuracy = [100 * service.accuracy for service in session.history[12].services]
        assert alpha[:6] == ["1", "alpha", "✔", "round", str(exit_), f"{accuracy[0]:.2f}"]
        assert beta[:5] == ["2", "beta", "not", "met", f"{accuracy[1]:.2f}"]
        assert float(beta[6]) == round(float(beta[5]) / accuracy[1], 2)
        place = next(i for i, line in enumerate(rows) if "alpha reaches its target and leaves" in line)
        await hold(pilot, "down", place - 1)
        await pilot.press("enter")
        assert screen.head.round == exit_
        assert shown(screen) == rows  # it still lists the whole run
        await pilot.press("home", "e")
        assert "7: summary" not in str(screen.query_one(StatusLine).render())


async def test_the_summary_of_a_live_run_ends_with_the_round_that_is_shown(app: MarketApp, play_small: Play) -> None:
    session = play_small(rounds=6, state=RunState.PAUSED)
    async with watching(app, session) as (pilot, screen):
        await pilot.press("7")
        assert screen.query_one(RivalryPanel).kind is RivalsPage
        await pilot.press("V")
        assert title(screen) == "7 Rivalry · summary up to round 6 (v: next page)"
        await pilot.press("[", "[")
        assert title(screen) == "7 Rivalry · summary up to round 4 (v: next page)"
        await pilot.press("home", "e")
        assert title(screen) == "7 Rivalry · no round is over yet"
        assert screen.query_one(RivalryLines).count == 0


async def test_a_long_run_is_read_in_pieces_that_leave_room_for_keys(
    app: MarketApp, play_small: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tui.state.offer_sums import OfferSums

    read, pieces = OfferSums.read, []

    def slowly(sums: OfferSums, last: int) -> bool:
        pieces.append(len(sums))
        return read(sums, last, most=1)

    monkeypatch.setattr(OfferSums, "read", slowly)
    async with watching(app, play_small()) as (pilot, screen):
        await pilot.press("7")
        await until(pilot, lambda: "summary: complete" in title(screen), "the last piece")
        assert pieces[:12] == list(range(12))


async def test_another_mechanism_has_no_rivals(app: MarketApp, play_small: Play) -> None:
    session = play_small()
    assert session.world is not None
    session.world.mechanisms, session.world._mechanism = {"second-price"}, "second-price"
    async with watching(app, session) as (pilot, screen):
        await pilot.press("7", "v")
        rows = shown(screen)
        assert "by whom is not known under this mechanism" in rows[0]
        refused = [sum(logged.services[m].refused for logged in session.history) for m in range(3)]
        assert [line.split(maxsplit=2)[2] for line in rows[1:]] == [counted(count, "offer") for count in refused]


async def test_fifty_services_scroll_and_only_what_is_visible_is_drawn(
    app: MarketApp, play_small: Play, scenario_text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    head, first, *_ = scenario_text.split("[[services]]")
    services = "".join("[[services]]" + first.replace('"alpha"', f'"service-{m}"') for m in range(50))
    text = head.replace("count = 8", "count = 400").replace("rounds = 12", "rounds = 2")
    async with watching(app, play_small(text + services), (120, 36)) as (pilot, screen):
        await pilot.press("7", "v")
        lines = screen.query_one(RivalryLines)
        assert lines.count == 50
        await hold(pilot, "right", 5)
        assert lines.scroll_offset.x > 50
        await pilot.press("left", "ctrl+end")
        assert lines.cursor == 49
        assert lines.scroll_offset.y > 30
        await pilot.press("v", "v")
        assert (lines.count, lines.scroll_offset.x, lines.cursor) == (400, 0, 0)
        drawn: set[int] = set()
        line = Earnings.line
        monkeypatch.setattr(Earnings, "line", lambda page, index: (drawn.add(index), line(page, index))[1])
        lines.refresh()
        await pilot.pause()
        assert 0 < len(drawn) <= lines.size.height
