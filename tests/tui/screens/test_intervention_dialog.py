"""The intervention dialog: what it proposes, and what it refuses because it would change nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Button, Input, Select, SelectionList, Static

from scenarios.loader import parse
from scenarios.logs.run_state import RunState
from support.screens import play_headlessly, start_of, until, watching
from support.tiers import slow
from tui.app import MarketApp
from tui.screens.compare import CompareScreen
from tui.screens.intervention_dialog import InterventionDialog
from tui.screens.market import MarketScreen
from tui.screens.run_dialogs import PickRunsDialog
from tui.state.watched_run import Session

Play = Callable[..., Session]
LATER = '[[interventions]]\nround = 6\nkey = "clients.cores"\nvalue = 2\n'


async def intervention(pilot: Pilot[None], key: str, value: str, round_: int) -> str:
    """Ask for an intervention; return the problem that the dialog shows."""
    dialog = pilot.app.screen
    assert isinstance(dialog, InterventionDialog)
    dialog.query_one("#key", Select).value = key
    await pilot.pause()
    dialog.query_one("#value", Input).value = value
    dialog.query_one("#round", Input).value = str(round_)
    dialog.query_one("#go", Button).press()
    await pilot.pause()
    return "" if pilot.app.screen is not dialog else str(dialog.query_one(".problem", Static).render())


async def test_the_chosen_service_is_proposed_if_it_is_still_in_the_market(app: MarketApp, play_small: Play) -> None:
    session = play_small()
    [left, *_] = session.history.exits
    async with watching(app, session) as (pilot, screen):
        for place, round_, wanted in ((1, left + 1, "beta"), (2, left + 1, "gamma"), (0, 1, "alpha"), (0, 11, "beta")):
            screen.selected = (place, 0)
            screen.head.seek(session.history, round_)
            await pilot.press("i")
            assert app.screen.query_one("#key", Select).value == f"services.{wanted}.budget", (place, round_)
            await pilot.press("escape")


async def test_the_next_round_is_proposed_while_a_service_has_yet_to_arrive(
    app: MarketApp, play_small: Play, scenario_text: str
) -> None:
    end = scenario_text.index("[[services]]", scenario_text.index('"beta"'))  # without gamma
    text = scenario_text[:end].replace('name = "beta"', 'name = "beta"\narrival = 10')
    [left, *_] = play_small(text).history.exits
    session = play_small(text, rounds=left)
    async with watching(app, session) as (pilot, _):
        await pilot.press("i")
        assert app.screen.query_one("#round", Input).value == str(left + 1)


async def test_an_intervention_on_a_service_that_has_left_is_refused(app: MarketApp, play_small: Play) -> None:
    session = play_small()
    [left, *_] = session.history.exits
    async with watching(app, session) as (pilot, _):
        await pilot.press("i")
        problem = await intervention(pilot, "services.alpha.budget", "5", left + 1)
        assert problem == f"alpha has left the market before round {left + 1}; choose an earlier round"
        assert not await intervention(pilot, "services.alpha.budget", "5", left)  # its last round


async def test_an_intervention_after_all_services_have_left_is_refused(
    app: MarketApp, play_small: Play, scenario_text: str
) -> None:
    text = scenario_text[: scenario_text.index("[[services]]", scenario_text.index("alpha"))]
    session = play_small(text)  # alpha is alone
    ended = len(session.history)
    assert ended < 11
    async with watching(app, session) as (pilot, _):
        await pilot.press("i")
        problem = await intervention(pilot, "clients.cores", "2", ended + 1)
        assert problem == f"all services have left the market before round {ended + 1}; choose an earlier round"


@pytest.mark.parametrize(
    ("key", "value", "round_"),
    [
        ("services.beta.budget", "12.0", 4),
        ("clients.cores", "2", 7),
        *slow(
            ("services.beta.budget", "12", 4),
            ("clients.cores", "1", 4),
            ("clients.cores", "2", 6),  # as the scenario has it
            ("clients.offline", "[]", 4),
        ),
    ],
)
async def test_an_intervention_that_changes_nothing_is_refused(
    app: MarketApp, play_small: Play, scenario_text: str, key: str, value: str, round_: int
) -> None:
    async with watching(app, play_small(f"{scenario_text}\n{LATER}")) as (pilot, _):
        await pilot.press("i")
        problem = await intervention(pilot, key, value, round_)
        assert problem == f"{key} has this value in round {round_} already; enter another one"


async def test_what_a_later_intervention_of_the_scenario_changes_again_is_a_change(
    app: MarketApp, play_small: Play, scenario_text: str
) -> None:
    chosen: list[tuple[str, int] | None] = []
    session = play_small(f"{scenario_text}\n{LATER}")
    async with app.run_test(size=(100, 30)) as pilot:
        app.push_screen(InterventionDialog(session, 4, 0), chosen.append)
        await pilot.pause()
        assert not await intervention(pilot, "clients.cores", "1", 6)
    [found] = chosen
    assert found is not None
    assert [(change.round, change.value) for change in parse(found[0]).interventions] == [(6, 1)]


@pytest.mark.parametrize(
    ("key", "after"),
    [
        ("services.beta.policy", "oort"),
        ("market.mechanism", '{ mechanism = "posted-price", options = { price_per_sample = 1.0 } }'),
    ],
)
async def test_policies_and_the_mechanism_can_be_changed(
    app: MarketApp, play_small: Play, key: str, after: str
) -> None:
    """Their present values are shown as they are entered: by name."""
    session, chosen = play_small(), list[tuple[str, int] | None]()
    assert session.scenario is not None
    before = "pay-as-offered" if key == "market.mechanism" else session.scenario.service("beta").policy
    async with app.run_test(size=(100, 30)) as pilot:
        app.push_screen(InterventionDialog(session, 4, 0), chosen.append)
        await pilot.pause()
        app.screen.query_one("#key", Select).value = key
        await pilot.pause()
        assert app.screen.query_one("#value", Input).value == before
        problem = await intervention(pilot, key, before, 4)
        assert problem == f"{key} has this value in round 4 already; enter another one"
        assert not await intervention(pilot, key, after, 4)
    [found] = chosen
    assert found is not None
    [change] = parse(found[0]).interventions
    assert (change.round, change.key) == (4, key)


async def test_an_error_goes_when_something_is_changed(app: MarketApp, play_small: Play) -> None:
    session = play_small()
    async with watching(app, session) as (pilot, _):
        for change in ("key", "value", "round"):
            await pilot.press("i")
            assert await intervention(pilot, "services.beta.budget", "12", 4)
            dialog = app.screen
            if change == "key":
                dialog.query_one("#key", Select).value = "clients.offline"
            else:
                dialog.query_one(f"#{change}", Input).value = "3"
            await pilot.pause()
            assert not str(dialog.query_one(".problem", Static).render()), change
            await pilot.press("escape")


async def test_a_number_that_is_typed_replaces_the_value_that_is_shown(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, _):
        await pilot.press("home", "down", "i", "5")
        dialog = app.screen
        assert isinstance(dialog, InterventionDialog)
        assert dialog.query_one("#value", Input).value == "5"
        assert dialog.query_one("#key", Select).value == "services.beta.budget"


async def test_a_fork_is_shown_with_the_service_that_was_chosen_and_marks_its_original(
    app: MarketApp, small: Path
) -> None:
    play_headlessly(start_of(small, seed=3), app._runner or ())
    [directory] = (small / "runs").glob("*/*/seed-0003")
    async with app.run_test(size=(120, 40)) as pilot:
        session = app.runs.open(directory)
        app.show_market(session)
        await until(pilot, lambda: session.state is RunState.COMPLETE)
        original = app.screen
        await pilot.press("home", "down", "i", "5", "enter")
        await until(pilot, lambda: isinstance(app.screen, MarketScreen) and app.screen is not original)
        assert isinstance(app.screen, MarketScreen)
        assert app.screen.selected == (1, 0)
        await pilot.press("c")  # also before the fork's process has begun
        await until(pilot, lambda: isinstance(app.screen, PickRunsDialog))
        assert app.screen.query_one(SelectionList).selected == ["open:0"]
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, CompareScreen))
        compared = app.screen
        assert isinstance(compared, CompareScreen)
        await until(pilot, lambda: all(session.over for session in compared.sessions), "the fork's end")
        assert compared.service == 1  # the one whose budget is another
        await pilot.press("tab")
        assert compared.service == 2
