"""Dialogs: interventions and those that change nothing, and the command line, in which a word finds a command."""

from pathlib import Path

import pytest
from rich.style import Style
from textual.command import CommandList
from textual.events import Click
from textual.pilot import Pilot
from textual.widgets import Button, Input, OptionList, Select, SelectionList

from scenarios.loader import parse
from scenarios.logs.run_state import RunState
from support.screens import Play, Runner, hold, painted, play_headlessly, rendered, screen_of, start_of, until, watching
from tui.app import MarketApp
from tui.screens.compare import CompareScreen
from tui.screens.intervention_dialog import BudgetShocks, InterventionDialog
from tui.screens.market import MarketScreen
from tui.screens.run_dialogs import PickRunsDialog
from tui.screens.search import Palette

LATER = '[[interventions]]\nround = 6\nkey = "clients.cores"\nvalue = 2\n'


async def intervention(pilot: Pilot[None], key: str, value: str, round_: int) -> str:
    """Ask for an intervention; return the problem that the dialog shows."""
    dialog = pilot.app.screen
    dialog.query_one("#key", Select).value = key
    await pilot.pause()
    dialog.query_one("#value", Input).value = value
    dialog.query_one("#round", Input).value = str(round_)
    dialog.query_one("#go", Button).press()
    await pilot.pause()
    return "" if pilot.app.screen is not dialog else rendered(dialog, ".problem")


@pytest.mark.slow
async def test_what_is_proposed_follows_the_choice_and_errors_go_with_a_change(
    app: MarketApp, play_small: Play
) -> None:
    session = play_small()
    [left, *_] = session.history.exits
    async with watching(app, session) as (pilot, screen):
        for place, round_, wanted in ((1, left + 1, "beta"), (2, left + 1, "gamma"), (0, 1, "alpha"), (0, 11, "alpha")):
            screen.selected = (place, 0)
            screen.head.seek(session.history, round_)
            await pilot.press("i")
            assert app.screen.query_one("#key", Select).value == f"services.{wanted}.budget", (place, round_)
            await pilot.press("escape")
        # An error goes when something is changed.
        screen.selected = (0, 0)
        await pilot.press("end")
        for change in ("key", "value", "round"):
            await pilot.press("i")
            assert await intervention(pilot, "services.beta.budget", "12", 4)
            dialog = app.screen
            if change == "key":
                dialog.query_one("#key", Select).value = "clients.offline"
            else:
                dialog.query_one(f"#{change}", Input).value = "3"
            await pilot.pause()
            assert not rendered(dialog, ".problem"), change
            await pilot.press("escape")
        # A number that is typed replaces the value that is shown.
        screen.selected = (0, 0)
        await pilot.press("home", "down", "i", "tab", "tab", "5")
        dialog = app.screen
        assert dialog.query_one("#value", Input).value == "5"
        assert dialog.query_one("#key", Select).value == "services.beta.budget"
        # An intervention on a service that has left is refused.
        await pilot.press("escape", "end")
        await pilot.press("i")
        problem = await intervention(pilot, "services.alpha.budget", "5", left + 1)
        assert problem == f"alpha has left the market before round {left + 1}; choose an earlier round"
        assert not await intervention(pilot, "services.alpha.budget", "5", left)  # its last round


@pytest.mark.slow
async def test_the_next_round_is_proposed_while_a_service_is_to_come(
    app: MarketApp, play_small: Play, scenario_text: str
) -> None:
    end = scenario_text.index("[[services]]", scenario_text.index('"beta"'))  # without gamma
    text = scenario_text[:end].replace('name = "beta"', 'name = "beta"\narrival = 10')
    [left, *_] = play_small(text).history.exits
    session = play_small(text, rounds=left)
    async with watching(app, session) as (pilot, _):
        await pilot.press("i")
        assert app.screen.query_one("#round", Input).value == str(left + 1)


@pytest.mark.slow
async def test_an_intervention_after_all_have_left_is_refused(
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


async def test_what_is_typed_before_the_list_of_keys_has_appeared_stays(app: MarketApp, play_small: Play) -> None:
    async with app.run_test(size=(100, 30)) as pilot:
        app.push_screen(InterventionDialog(play_small(), 4, 0))
        await pilot.pause()
        value = app.screen.query_one("#value", Input)
        value.value = "5"
        keys = app.screen.query_one("#key", Select)
        keys.post_message(Select.Changed(keys, keys.value))  # as a list does that appears late
        await pilot.pause()
        assert value.value == "5"
        keys.value = "clients.cores"
        await pilot.pause()
        assert value.value == "1"


async def test_an_intervention_without_a_change_is_refused(
    app: MarketApp, play_small: Play, scenario_text: str
) -> None:
    """What a later intervention of the scenario changes again is a change."""
    chosen: list[tuple[str, int] | None] = []
    async with app.run_test(size=(100, 30)) as pilot:
        app.push_screen(InterventionDialog(play_small(f"{scenario_text}\n{LATER}"), 4, 0), chosen.append)
        await pilot.pause()
        for key, value, round_ in (
            ("services.beta.budget", "12.0", 4),
            ("services.beta.budget", "12", 4),
            ("clients.cores", "1", 4),
            ("clients.cores", "2", 6),  # as the scenario has it
            ("clients.cores", "2", 7),
            ("clients.offline", "[]", 4),
        ):
            problem = await intervention(pilot, key, value, round_)
            assert problem == f"{key} has this value in round {round_} already; enter another one"
        assert not await intervention(pilot, "clients.cores", "1", 6)
    [found] = chosen
    assert [(change.round, change.value) for change in parse(found[0]).interventions] == [(6, 1)]


async def test_policies_and_the_mechanism_can_be_changed(app: MarketApp, play_small: Play) -> None:
    """Their present values are shown as they are entered: by name."""
    session, chosen = play_small(), list[tuple[str, int] | None]()
    changes = {
        "services.beta.policy": (session.scenario.service("beta").policy, "oort"),
        "market.mechanism": (
            "pay-as-offered",
            '{ mechanism = "posted-price", options = { price_per_sample = 1.0 } }',
        ),
    }
    async with app.run_test(size=(100, 30)) as pilot:
        for key, (before, after) in changes.items():
            app.push_screen(InterventionDialog(session, 4, 0), chosen.append)
            await pilot.pause()
            app.screen.query_one("#key", Select).value = key
            await pilot.pause()
            assert app.screen.query_one("#value", Input).value == before
            problem = await intervention(pilot, key, before, 4)
            assert problem == f"{key} has this value in round 4 already; enter another one"
            assert not await intervention(pilot, key, after, 4)
    made = [parse(found[0]).interventions for found in chosen if found is not None]
    assert [[(change.round, change.key) for change in changed] for changed in made] == [[(4, key)] for key in changes]


@pytest.mark.slow
async def test_three_keys_double_a_budget_and_show_the_fork_beside_its_original(
    app: MarketApp, small: Path, fake_runner: Runner
) -> None:
    """Today's task in keys: at most 4 from the market screen."""
    play_headlessly(start_of(small, seed=3), fake_runner("formula"))
    [directory] = (small / "runs").glob("*/*/seed-0003")
    async with app.run_test(size=(120, 40)) as pilot:
        session = app.runs.open(directory)
        app.show_market(session)
        await until(pilot, lambda: session.state is RunState.COMPLETE)
        original = app.screen
        assert isinstance(original, MarketScreen)
        original.show_round(5)
        await pilot.press("down", "i", "3")
        compared = await screen_of(pilot, CompareScreen)
        fork, beside = compared.sessions
        assert beside is session
        await until(pilot, lambda: fork.over, "the fork's end")
        assert fork.scenario is not None
        assert [(it.round, it.key, it.value) for it in fork.scenario.interventions] == [(6, "services.beta.budget", 24)]
        assert fork.state is RunState.COMPLETE
        assert [fork.history[n].text == session.history[n].text for n in (5, 6)] == [True, False]
        assert compared.service == 1  # the one whose budget is another
        await pilot.press("tab")
        assert compared.service == 2
        # Below it is the fork, with what was chosen in its original, which c compares it with again.
        await pilot.press("escape")
        market = app.screen
        assert isinstance(market, MarketScreen)
        assert (market.session, market.selected[0]) == (fork, 1)
        await pilot.press("c")
        picking = await screen_of(pilot, PickRunsDialog)
        assert picking.query_one(SelectionList).selected == ["open:0"]


async def test_a_quarter_a_half_and_twice_a_budget_are_of_what_is_in_force(
    app: MarketApp, play_small: Play, scenario_text: str
) -> None:
    changed = '[[interventions]]\nround = 3\nkey = "services.beta.budget"\nvalue = 7\n'
    session, chosen = play_small(f"{scenario_text}\n{changed}"), list[tuple[str, int] | None]()
    async with app.run_test(size=(80, 24)) as pilot:
        for keys in ("1", "2", "3", ["down", "enter"]):
            app.push_screen(dialog := InterventionDialog(session, 4, 1), chosen.append)
            await pilot.pause()
            for words in ("beta's budget from round 4, which is 7", "x 1/4 = 1.75", "x 1/2 = 3.5", "x 2 = 14"):
                assert words in painted(app)
            assert dialog.query_one("#go", Button).region.bottom < 23
            await pilot.press(*keys)
    made = [parse(found[0]).interventions[-1] for found in chosen if found is not None]
    assert [(it.round, it.key, it.value) for it in made] == [
        (4, "services.beta.budget", value) for value in (1.75, 3.5, 14, 3.5)
    ]
    assert [str(it.value) for it in made] == ["1.75", "3.5", "14", "3.5"]


@pytest.mark.slow
async def test_of_a_service_that_has_left_it_is_said_and_no_other_is_proposed(app: MarketApp, play_small: Play) -> None:
    session = play_small()
    [left, *_] = session.history.exits
    said = f"alpha has left the market before round {left + 1}; choose an earlier round"
    async with watching(app, session) as (pilot, screen):
        screen.show_round(left)
        await pilot.press("i")
        await pilot.pause()
        dialog = app.screen
        assert rendered(dialog, ".problem") == said
        assert dialog.query_one("#key", Select).value == "services.alpha.budget"
        assert not dialog.query(BudgetShocks)
        assert dialog.query_one("#round", Input).has_focus
        await pilot.press("enter")
        assert app.screen is dialog
        assert rendered(dialog, ".problem") == said


@pytest.mark.slow
async def test_keys_that_come_faster_than_screens_go_close_one_alone(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        await pilot.press("colon")
        app.screen.query_one(Input).value = "Why"
        await until(pilot, lambda: app.screen.query_one(OptionList).option_count == 1, "the command")
        await pilot.press("down")
        await hold(pilot, "enter", 2)
        assert app.screen is screen
        # Keys at once close a dialog alone.
        for opening, second in (("g", "escape"), ("slash", "enter")):
            await pilot.press(opening)
            app.simulate_key("enter")
            app.simulate_key(second)
            await pilot.pause()
            assert app.screen is screen
        # What would close a dialog below the command line closes neither.
        await pilot.press("g")
        dialog = app.screen
        await pilot.press("ctrl+p")
        dialog.dismiss()
        await pilot.pause()
        assert isinstance(app.screen, Palette)
        assert dialog in app.screen_stack


@pytest.mark.slow
async def test_the_command_line_opens_again_at_once_and_closes_while_it_gathers(app: MarketApp) -> None:
    async with app.run_test() as pilot:
        await pilot.press("colon")
        first = app.screen
        first.dismiss()
        app.action_command_palette()
        await pilot.pause()
        assert isinstance(app.screen, Palette)
        assert app.screen is not first
        # A click on a command that has gone does nothing.
        await pilot.press("escape")
        await pilot.press("colon")
        commands = app.screen.query_one(OptionList)
        await until(pilot, lambda: commands.region, "the commands")
        where, gone = commands.region, Style(meta={"option": 1000})
        click = Click(commands, 1, 1, 0, 0, 1, False, False, False, where.x + 1, where.y + 1, style=gone)
        commands.post_message(click)
        await pilot.pause()
        assert isinstance(app.screen, Palette)
        # The command line may be closed while commands are gathered.
        await pilot.press("escape")
        await pilot.press("colon")
        palette = app.screen
        await palette.dismiss()
        gathering = palette._gather_commands("why")
        await until(pilot, lambda: gathering.is_finished, "the commands")
        assert app._exception is None


COMMANDS = (
    ("fork", "Intervene", "i"),
    ("intervention", "Intervene", "i"),
    ("compare", "Compare", "c"),
    ("export", "Export", "x"),
    ("csv", "Export", "x"),
    ("speed", "Speed", "+"),
    ("lower", "Slower", "-"),
    ("pause", "Replay", "space"),  # of a run that is over
    ("refused", "Next outbid", "o"),
    ("suspend", "Suspend", "ctrl+z"),
    ("nord", "Theme nord", ""),
    ("batch", "Watch all runs", ""),
)
"""A word, the first command that it finds, and its key."""


@pytest.mark.slow
async def test_a_word_finds_the_command_and_its_key_and_enter_does_it(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small(), (120, 40)) as (pilot, _):

        async def look_for(word: str, command: str) -> str:
            await pilot.press("colon", *word)
            palette = await screen_of(pilot, Palette)
            field, offered = palette.query_one(Input), palette.query_one(CommandList)
            # What letters before the last found is shown until the whole word has been looked for.
            await until(pilot, lambda: field.value == word, word)
            await until(pilot, lambda: all(job.is_finished for job in app.workers if job.node is palette), word)
            assert offered.option_count, f"nothing is found for {word}"
            assert command in str(offered.options[0].prompt)
            return str(offered.options[0].prompt)

        for word, command, key in COMMANDS:
            assert f"key {key} · " * bool(key) in await look_for(word, command)
            await pilot.press("escape")
        await look_for("fork", "Intervene")
        await pilot.press("enter")
        await screen_of(pilot, InterventionDialog)
