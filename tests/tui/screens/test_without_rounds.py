"""Screens of continuous markets, whose work outlasts rounds."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from des.money import MICRO
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.what_if.explain import Explanation
from scenarios.loader import load
from scenarios.logs.directory import RunDirectory
from scenarios.logs.reading import RunReader
from scenarios.logs.run_state import RunState
from support.runs import Row, played, table
from support.screens import showing, text_of, until
from tui.app import MarketApp
from tui.panels.answers import AnswerPanel
from tui.panels.client_grid import ClientGrid
from tui.panels.curves import CurvesPanel
from tui.panels.gantt import CoreLines, CoresPanel
from tui.panels.order_book import GrowingText
from tui.panels.rivalry import RivalryPanel
from tui.panels.services import ServicesTable
from tui.screens.compare import CompareScreen
from tui.screens.market import MarketScreen
from tui.state.offer_sums import OfferSums
from tui.state.watched_run import Session
from tui.widgets.comparison import DELTA, CompareTable

ROUNDS = 12
CHANGES = {"training.backend": "surrogate", "rounds": ROUNDS, "services.async.target_accuracy": 0.15}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """Four services that wait, buffer, or do neither; clients' speeds span two orders of magnitude."""
    return played(load("stragglers", CHANGES), tmp_path_factory.mktemp("stragglers"))


@asynccontextmanager
async def replayed(
    app: MarketApp, run: RunDirectory, number: int, size: tuple[int, int] = (200, 60)
) -> AsyncIterator[tuple[Pilot[None], MarketScreen]]:
    """Show a round of the run."""
    session = app.runs.open(run.path)
    async with showing(app, MarketScreen(session, app, number), size) as (pilot, screen):
        await until(pilot, lambda: session.over and screen.head.round == number)
        yield pilot, screen


def at_work(run: RunDirectory, number: int) -> list[Row]:
    """The offers whose clients are at work as a round ends, by the table."""
    jobs = [row for row in table(run.path, "offers") if row["core"] and int(row["round"]) <= number]
    return [row for row in jobs if float(row["end"]) > 2.0 * number]


async def test_services_have_who_is_at_work_and_how_stale_updates_are(app: MarketApp, run: RunDirectory) -> None:
    async with replayed(app, run, 1) as (pilot, screen):
        for number in range(2, ROUNDS, 4):
            screen.show_round(number)
            await pilot.pause()
            shown, working = screen.query_one(ServicesTable), at_work(run, number)
            models = [row for row in table(run.path, "models") if row["round"] == str(number)]
            for m, row in enumerate(screen.view.logged.services):
                assert int(shown.cell(m, "at work").plain) == sum(it["service"] == row.service for it in working)
                own = [it for it in models if it["service"] == row.service]
                updates = sum(int(it["updates"]) for it in own)
                stale = sum(int(it["updates"]) * float(it["mean_staleness"]) for it in own) / max(updates, 1)
                assert shown.cell(m, "stale").plain == (f"{stale:.2f}" if own else "\N{EN DASH}")
        await pilot.press("e")  # in a walk, what follows is not known
        assert {shown.cell(m, "stale").plain for m in range(4)} == {"\N{EN DASH}"}


async def test_bars_of_budgets_begin_in_one_column_whatever_came_in(app: MarketApp, tmp_path: Path) -> None:
    """Where events end rounds, budgets come in by the second: 0.7322 in one round, say, and 30 in another."""
    many = played(load("stragglers", {**CHANGES, "timeline.decide": ["free"], "rounds": 12}), tmp_path)
    begin, budgets = set[int](), set[str]()
    async with replayed(app, many, 12) as (pilot, screen):
        for number in range(1, 13):
            screen.show_round(number)
            await pilot.pause()
            for m in range(4):
                cell = screen.query_one(ServicesTable).cell(m, "spent").plain
                [numbers, _] = re.split("(?=[━┄])", cell, maxsplit=1)
                budgets.add(numbers.partition("/")[2].strip())
                begin.add(len(numbers))
    assert any(0 < float(budget) < 1 for budget in budgets)
    assert len(begin) == 1


@pytest.mark.slow
async def test_curves_have_the_staleness_by_round(app: MarketApp, run: RunDirectory) -> None:
    async with replayed(app, run, ROUNDS) as (pilot, screen):
        panel = screen.query_one(CurvesPanel)
        await pilot.press("v", "v", "v", "v")
        assert "mean staleness of the updates" in str(panel.border_title)
        await pilot.press("v")
        assert panel.metric == "accuracy"


@pytest.mark.slow
async def test_cores_show_the_jobs_of_the_last_slots_to_their_ends(app: MarketApp, run: RunDirectory) -> None:
    """Also those that began in an earlier round, and several on one core."""
    async with replayed(app, run, 10) as (pilot, screen):
        lines, now = screen.query_one(CoreLines), 20.0
        jobs = [row for row in table(run.path, "offers") if row["core"] and int(row["round"]) <= 10]
        assert lines.count == len({row["client"] for row in jobs})  # each client has one core
        working = at_work(run, 10)
        assert working
        assert str(screen.query_one(CoresPanel).border_title).endswith(f"begun, {len(working)} at work")
        scale = lines._room / now
        for index in range(lines.count):
            bar = lines.line(index)[1]
            client = str(lines._cores[index][0].client)
            own = [row for row in jobs if row["client"] == client]
            assert len(lines._cores[index]) == len(own)
            if len(own) > 1:
                busy = sum(span.end - span.start for span in bar.spans)
                seconds = sum(min(float(row["end"]), now) - float(row["start"]) for row in own)
                assert abs(busy - seconds * scale) <= len(own)
        [longest] = (row for row in jobs if float(row["end"]) == max(float(it["end"]) for it in jobs))
        index = next(i for i in range(lines.count) if str(lines._cores[i][0].client) == longest["client"])
        assert lines.line(index)[1].cell_len == lines._room  # it is at work to the right edge
        await pilot.press("e")  # in a walk, no more is known than has happened
        assert all((job.start or 0) <= screen.view.clock for own in lines._cores for job in own)


@pytest.mark.slow
async def test_the_window_of_cores_moves_with_the_clock(app: MarketApp, tmp_path: Path) -> None:
    long = played(load("stragglers", {**CHANGES, "rounds": 40}), tmp_path)
    async with replayed(app, long, 38) as (_, screen):
        lines = screen.query_one(CoreLines)
        assert lines._span == (16 * MICRO, 76 * MICRO)
        began_before = [job for own in lines._cores for job in own if (job.start or 0) < 16 * MICRO]
        assert began_before
        assert all((job.end or 0) > 16 * MICRO for own in lines._cores for job in own)


async def test_why_is_what_explain_says_and_who_is_at_work_is_marked(app: MarketApp, run: RunDirectory) -> None:
    logs = Logs.read(run)
    async with replayed(app, run, 6) as (pilot, screen):
        session, view = screen.session, screen.view
        for logged in session.history:
            book = session.book(logged)
            for m, row in enumerate(logged.services):
                offers = logs.offers_of(logged.number, row.service)
                if row.status.takes_part:
                    explanation = Explanation(logs, logged.number, row.service)
                    lost = [it for it in offers.itertuples() if it.outcome == "outbid"]
                    assert [book.line(m, it.client).reason for it in lost] == [explanation.why(it) for it in lost]
        began = at_work(run, 5)[0]
        m = next(m for m, row in enumerate(view.logged.services) if row.service == began["service"])
        assert view.mark(m, int(began["client"])) == "▶"
        screen.selected = m, int(began["client"])
        await pilot.press("W")
        said = str(screen.query_one(AnswerPanel).query_one(GrowingText).render())
        assert f"at work for {began['service']}" in said
        assert f"from {float(began['start']):.2f} s to {float(began['end']):.2f} s" in said


@pytest.mark.slow
async def test_rivalry_counts_offers_that_lost_a_core_while_they_stood(app: MarketApp, run: RunDirectory) -> None:
    offers = table(run.path, "offers")
    won = {(row["round"], row["client"]): row for row in offers if row["core"]}  # each client has one core
    async with replayed(app, run, ROUNDS) as (pilot, screen):
        names = [row.service for row in screen.view.logged.services]
        sums = OfferSums(screen.session.history, names, 24)
        while not sums.read(ROUNDS):
            pass
        lost = [(row, other) for row in offers if not row["core"] and (other := won.get((row["round"], row["client"])))]
        for one in names:
            for other in names:
                pairs = [it for it in lost if (it[1]["service"], it[0]["service"]) == (one, other)]
                place = names.index(one), names.index(other)
                assert sums.at(ROUNDS).times[place] == len(pairs)
                margin = sum(float(it["payment"]) - float(row["payment"]) for row, it in pairs)
                assert sums.at(ROUNDS).margin[place] == pytest.approx(margin * MICRO)
                assert not pairs or margin >= 0
        await pilot.press("7", "v")
        assert lost
        assert "not known" not in text_of(screen.query_one(RivalryPanel))


@pytest.mark.slow
async def test_a_run_that_is_followed_shows_the_same(app: MarketApp, run: RunDirectory) -> None:
    """Live, rounds come one by one, with all of their tables."""
    live = Session("live", state=RunState.RUNNING)
    live.identify(run.path, run.scenario_text())
    for text in RunReader(run.path).grow(4):
        live.add(text)
    kinds, whole = (ServicesTable, CoreLines, ClientGrid), app.runs.open(run.path)
    async with showing(app, MarketScreen(live, app, 7), (200, 60)) as (pilot, screen):
        one = [text_of(screen.query_one(kind)) for kind in kinds]
        app.push_screen(screen := MarketScreen(whole, app, 7))
        await until(pilot, lambda: whole.over)
        assert one == [text_of(screen.query_one(kind)) for kind in kinds]


async def test_compare_has_seconds_to_target(app: MarketApp, run: RunDirectory) -> None:
    async with app.run_test(size=(200, 48)) as pilot:
        sessions = [app.runs.open(run.path) for _ in range(2)]
        await until(pilot, lambda: all(session.state is RunState.COMPLETE for session in sessions))
        app.push_screen(screen := CompareScreen(sessions, app))
        await until(pilot, lambda: screen.query(CompareTable) and screen.query_one(CompareTable).count == 8)
        shown, met = screen.query_one(CompareTable), sessions[0].history.exit_of(2, ROUNDS)
        assert met
        found = [shown.cell(row, "rounds to target").plain for row in range(8)]
        assert found == ["never"] * 4 + [f"{2 * met} s"] * 2 + ["never"] * 2
        assert shown.cell(5, DELTA + "rounds to target").plain == "+0 s"
