"""Compare: runs side by side."""

from collections.abc import Callable

from textual.widgets import DataTable, Static

from tui.app import MarketApp
from tui.screens.compare import CompareScreen
from tui.screens.market import MarketScreen
from tui.watching.comparison import caveats, compare
from tui.watching.session import Phase, Session

Play = Callable[..., Session]


def two(play: Play, text: str, *, rounds: int | None = None, phase: Phase = Phase.COMPLETE) -> list[Session]:
    return [play(text), play(text.replace('"lcfa"', '"d-first"'), rounds=rounds, phase=phase)]


def test_differences_from_the_baseline(play_small: Play, scenario_text: str) -> None:
    sessions = two(play_small, scenario_text)
    rows = compare(sessions, [12, 12], 0)
    assert [(row.service, row.run) for row in rows] == [(s, r) for s in ("alpha", "beta", "gamma") for r in (0, 1)]
    base, other = rows[2], rows[3]
    assert base.accuracy_delta is None
    assert other.policy == "d-first"
    assert other.accuracy_delta == other.accuracy - base.accuracy
    assert other.spent_delta == other.spent - base.spent
    assert base.spent == sum(logged.services[1].spent for logged in sessions[0].history.rounds) / 1e6
    assert compare(sessions, [12, 12], 1)[2].accuracy_delta == -other.accuracy_delta
    assert compare(sessions, [12, 0], 0)[1].run == 0  # one has no round yet


def test_names_what_makes_a_comparison_unfair(play_small: Play, scenario_text: str) -> None:
    one, other = two(play_small, scenario_text)
    assert caveats([one, other]) == []
    other.seed, other.hash8 = 2, "11111111"
    assert caveats([one, other]) == [
        "different markets (settings, sweep values or shocks)",
        "different seeds: part of the difference is chance",
    ]
    one.kernels, other.kernels = {"alpha": "fused"}, {"alpha": "reference"}
    assert caveats([one, other])[-1] == "trained in different arithmetic: part of the difference comes from that"


async def test_every_key(app: MarketApp, play_small: Play, scenario_text: str) -> None:
    sessions = two(play_small, scenario_text, rounds=5, phase=Phase.PAUSED)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = CompareScreen(sessions, app)
        app.push_screen(screen)
        await pilot.pause()
        table = screen.query_one(DataTable)
        assert table.row_count == 6
        assert "round 5" in str(screen.query_one("#compare-status", Static).render())
        await pilot.press("l")  # each at its own latest
        assert "round 12" in str(screen.query_one("#compare-status", Static).render())
        await pilot.press("v", "tab", "tab")
        assert (screen.metric, screen.service) == ("reward", 2)
        await pilot.press("b")
        assert "round 5 ⏸ paused (baseline)" in str(screen.query_one("#compare-status", Static).render())
        await pilot.press("space")  # none of them is a process of ours
        assert [note.message for note in app._notifications] == [
            "None of these runs is played by this app, so there is nothing to pause."
        ]
        await pilot.press("down", "enter")
        assert isinstance(app.screen, MarketScreen)
        assert app.screen.session is sessions[1]


async def test_an_open_run_is_compared_with_another(app: MarketApp, play_small: Play, scenario_text: str) -> None:
    from textual.widgets import Button, SelectionList

    one, other = two(play_small, scenario_text)
    async with app.run_test(size=(120, 40)) as pilot:
        app.runs.sessions += [one, other]
        app.push_screen(MarketScreen(one, app))
        await pilot.pause()
        await pilot.press("c")
        dialog = app.screen
        dialog.query_one("#go", Button).press()
        await pilot.pause()
        assert "mark at least one run with space" in str(dialog.query_one(".problem", Static).render())
        dialog.query_one(SelectionList).select("open:1")
        dialog.query_one("#go", Button).press()
        await pilot.pause()
        assert isinstance(app.screen, CompareScreen)
        assert app.screen.sessions == [one, other]
