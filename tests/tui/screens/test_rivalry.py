"""The rounds of a run, the sums over their offers, and the rivalry panel that shows them."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from textual.pilot import Pilot

from des.log_records import Outcome
from flmarket.analysis.what_if.decisive_rounds import decisive
from flmarket.core.text import counted
from scenarios.logs.columns import TABLES
from scenarios.logs.reading import LoggedRound, StoredRounds
from scenarios.logs.run_state import RunState
from support.screens import Play, hold, rendered, until, watching
from tui.app import MarketApp
from tui.panels.event_log import EventsPanel
from tui.panels.gantt import CoresPanel
from tui.panels.rivalry import PAGES, Earnings, Money, RivalryLines, RivalryPanel, RivalsPage, SummaryPage
from tui.panels.status_line import StatusLine
from tui.screens.market import MarketScreen
from tui.state import history as module
from tui.state.bid_verdicts import RoundBook
from tui.state.compared_runs import result_at
from tui.state.history import History
from tui.state.offer_sums import OfferSums, Sums
from tui.state.watched_run import Session

TIMES = "\N{MULTIPLICATION SIGN}"


def shown(screen: MarketScreen) -> list[str]:
    """The lines of the page that is chosen, as far as they scroll."""
    lines = screen.query_one(RivalryLines)
    pairs = [lines.head(), *map(lines.line, range(lines.pages[0].count))]
    return [f"{label.plain}{words.plain}" for label, words in pairs]


def title(screen: MarketScreen) -> str:
    return str(screen.query_one(RivalryPanel).border_title)


async def turn_to(pilot: Pilot[None], screen: MarketScreen, page: type) -> None:
    await pilot.press("7")
    for _ in PAGES:
        if screen.query_one(RivalryPanel).kind is not page:
            await pilot.press("v")


@pytest.mark.slow
async def test_every_page_fits_its_panel_in_the_place_of_events_and_cores(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small(), (80, 24)) as (pilot, screen):
        panel, lines = screen.query_one(RivalryPanel), screen.query_one(RivalryLines)
        behind = [screen.query_one(EventsPanel), screen.query_one(CoresPanel)]
        for size in ((80, 24), (120, 36), (159, 60)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            large = size[0] > 80  # in a small terminal there is one panel at a time
            room = behind[0].region.union(behind[1].region)
            assert not panel.display
            await pilot.press("7")
            assert lines.has_focus
            assert lines.size.width >= 66
            assert not any(other.display for other in behind)
            assert panel.region == room or not large
            seen = []
            for _ in PAGES:
                seen.append(panel.kind)
                assert lines.virtual_size.width <= lines.size.width, panel.kind
                assert lines.count >= len(shown(screen)) - 1 > 0
                await pilot.press("v")
            assert seen == [SummaryPage, RivalsPage, Money, Earnings]
            assert panel.kind is SummaryPage
            await pilot.press("4")
            assert panel.display == large  # beside the order book
            await pilot.press("6")
            assert not panel.display
            assert all(other.display for other in behind) or not large
            await pilot.press("7", "5")
            assert not panel.display
            assert behind[0].display


async def test_where_there_is_room_the_next_pages_are_below_the_one_that_is_chosen(
    app: MarketApp, play_small: Play
) -> None:
    async with watching(app, play_small(), (160, 48)) as (pilot, screen):
        lines = screen.query_one(RivalryLines)
        await pilot.press("7", "m")
        for kind in PAGES:
            await turn_to(pilot, screen, kind)
            first = PAGES.index(kind)
            assert [*map(type, lines.pages)] == [*PAGES[first:], *PAGES[:first]]
        # Their lines can be chosen, and their titles cannot.
        await turn_to(pilot, screen, RivalsPage)
        for index, service in ((0, 0), (3, None), (4, 0), (5, 1), (7, None)):
            screen.selected = (2, 0)
            lines.cursor = index
            await pilot.press("enter")
            assert screen.selected[0] == (2 if service is None else service)
        assert lines.line(3)[0].plain.strip() == "service"
        # In less room there are fewer.
        await pilot.press("m")
        await pilot.pause()
        assert [*map(type, lines.pages)] == [RivalsPage, Money]


@pytest.mark.slow
async def test_rivals_money_and_the_summary_agree_with_the_log(app: MarketApp, play_small: Play) -> None:
    session = play_small()
    exit_ = session.history.exits[0]
    spent = [sum(logged.services[m].spent for logged in session.history) / 1e6 for m in range(3)]
    first = session.history.conflicts[0]
    async with watching(app, session) as (pilot, screen):
        assert "round 12/12  7: summary" in rendered(screen, StatusLine)
        await pilot.press("7")
        assert title(screen) == "7 Rivalry · summary: complete after round 12 (v: next)"
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
        assert "7: summary" not in rendered(screen, StatusLine)
        # Money and earnings.
        await pilot.press("end")
        await turn_to(pilot, screen, Money)
        rows = shown(screen)
        assert rows[0].split() == ["service", "spent", "a", "point", "served", "refused", "not", "spent"]
        assert [line.split()[2] for line in rows[1:4]] == [f"{amount:.2f}" for amount in spent]
        assert rows[4].startswith("market ")
        assert f"{sum(spent):.2f}" in rows[4]
        await pilot.press("v")
        assert shown(screen)[0].split() == ["client", "earned", "jobs", "8", "of", "8", "clients", "paid"]
        earned = [float(line.split()[1]) for line in shown(screen)[1:]]
        assert earned == sorted(earned, reverse=True)
        assert abs(sum(earned) - sum(spent)) < 0.05
        assert "Gini 0." in title(screen)
        await pilot.press("down", "enter")
        assert screen.selected[1] == int(shown(screen)[2].split()[0])
        # Rivals are counted up to the round that is shown.
        await pilot.press("home")
        await turn_to(pilot, screen, RivalsPage)
        for _ in range(first, 11):
            await pilot.press("]")
        rows = shown(screen)
        assert title(screen) == f"7 Rivalry · who outbid whom, rounds 1 to {screen.head.round} (v: next)"
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


async def test_the_summary_of_a_live_run_ends_with_the_round_that_is_shown(app: MarketApp, play_small: Play) -> None:
    session = play_small(rounds=6, state=RunState.PAUSED)
    async with watching(app, session) as (pilot, screen):
        await pilot.press("7")
        assert screen.query_one(RivalryPanel).kind is RivalsPage
        await pilot.press("V")
        assert title(screen) == "7 Rivalry · summary up to round 6 (v: next)"
        await pilot.press("[", "[")
        assert title(screen) == "7 Rivalry · summary up to round 4 (v: next)"
        await pilot.press("home", "e")
        assert title(screen) == "7 Rivalry · no round is over yet"
        assert screen.query_one(RivalryLines).count == 0


async def test_a_long_run_leaves_room_for_keys(
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


async def test_another_mechanism_has_no_rivals(app: MarketApp, play_small: Play, scenario_text: str) -> None:
    session = play_small(scenario_text + '\n[market]\nmechanism = "uniform-price"\n')
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


def sums_of(session: Session) -> OfferSums:
    names = [service.name for service in session.scenario.services]
    return OfferSums(session.history, names, session.scenario.clients.count)


def counted_anew(session: Session, last: int) -> Sums:
    """The sums, from the order books of all rounds."""
    names = [service.name for service in session.scenario.services]
    sums = Sums.zero(len(names), session.scenario.clients.count)
    for number in range(1, last + 1):
        logged = session.history[number]
        book = RoundBook(logged, session.world)
        for offer in logged.offers:
            m = names.index(offer.service)
            if offer.outcome is Outcome.SERVED:
                sums.earned[offer.client] += offer.paid or 0
                sums.jobs[offer.client] += 1
            elif offer.outcome is Outcome.OUTBID:
                lowest = book.holders[offer.client][-1]
                sums.times[names.index(lowest.service), m] += 1
                sums.margin[names.index(lowest.service), m] += lowest.payment - offer.payment
    return sums


def same(one: Sums, other: Sums) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in ("times", "margin", "earned", "jobs")
    )


def test_sums_are_those_of_the_order_books_at_every_round(play_small: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.state.offer_sums.STEP", 3)
    session = play_small()
    sums, pieces = sums_of(session), 1
    while not sums.read(12, most=10):  # a long run is read in pieces
        assert len(sums) < 12
        pieces += 1
    assert pieces > 3
    for number in (12, 11, 3, 4, 12, 1, 0, 7):
        found = sums.at(number)
        assert found.round == number
        assert same(found, counted_anew(session, number)), number
    rows = [row for logged in session.history for row in logged.services]
    assert sums.at(12).times.sum() == sum(row.refused for row in rows) > 0  # none is dropped
    assert sums.at(12).earned.sum() == sum(row.spent for row in rows)
    assert sums.at(12).jobs.sum() == sum(row.served for row in rows)


def test_an_offer_that_was_outbid_by_several_counts_once(play_small: Play, scenario_text: str) -> None:
    session = play_small(scenario_text.replace("cores = 1", "cores = 2").replace('"random"', '"hqfa"'))
    sums = sums_of(session)
    sums.read(12)
    refused = sum(row.refused for logged in session.history for row in logged.services)
    assert sums.at(12).times.sum() == refused > 0
    assert same(sums.at(12), counted_anew(session, 12))


def test_decisive_rounds_are_exits_interventions_and_the_worst_of_each(play_small: Play, scenario_text: str) -> None:
    intervention = '[[interventions]]\nround = 3\nkey = "clients.offline"\nvalue = [1]\n'
    session = play_small(scenario_text + intervention)
    found = decisive(result_at(session, 12))
    assert [event.round for event in found] == sorted(event.round for event in found)
    words = {event.words: event.round for event in found}
    assert words["alpha reaches its target and leaves"] == session.history.exits[0]
    assert words["intervention: clients.offline = [1]"] == 3
    for last in (5, 12):
        rounds = list(session.history)[:last]
        for m, name in enumerate(("alpha", "beta", "gamma")):
            left = [logged.services[m].offered - logged.services[m].spent for logged in rounds]
            decided = decisive(result_at(session, last))
            [worst] = [event for event in decided if event.words.startswith(f"worst round of {name}: ")]
            assert worst.round == 1 + left.index(max(left))
            row = rounds[worst.round - 1].services[m]
            expected = f"{row.refused} of {row.wanted} offers refused, {max(left) / 1e6:.2f} not spent"
            assert worst.words == f"worst round of {name}: {expected}"
    assert all(event.round <= 2 for event in decisive(result_at(session, 2)))


@pytest.mark.parametrize(("window", "most"), [(20_000, 512), (100_000_000, 4)])
def test_memory_holds_a_window_of_rounds_and_the_files_the_others(
    play_small: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: int, most: int
) -> None:
    whole = [logged.text for logged in play_small().history]
    assert sum(len(part) for text in whole for part in text.values()) > 20_000
    monkeypatch.setattr(module, "WINDOW", window)
    monkeypatch.setattr(module, "MOST", most)
    for name, table in TABLES.items():
        table.path(tmp_path).write_text(table.header + "".join(text[name] for text in whole))
    history = History()
    history.stored = StoredRounds(tmp_path)
    for text in whole:
        history.stored.add_text(text)
        history.append(LoggedRound.read(text))
        assert history._newest.letters + history._looked_at.letters <= window
    for number in (1, 12, 5, 3, 1, 2, 12, 7):
        assert history[number].text == whole[number - 1]
        assert history._newest.letters + history._looked_at.letters <= window
        assert len(history._newest.rounds) <= most
        assert len(history._looked_at.rounds) <= most
    assert len(list(history)) == len(history) == 12


def test_rounds_not_yet_in_files_stay_in_memory(
    play_small: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST", 4)
    history = History()
    history.stored = StoredRounds(tmp_path)
    for logged in play_small().history:
        history.stored.add_text(logged.text)
        history.append(LoggedRound.read(logged.text))
    assert [logged.number for logged in history] == list(range(1, 13))
