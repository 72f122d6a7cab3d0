"""The dialog before a run."""

from inspect import signature

from textual.widgets import Input

from scenarios.loader import parse
from scenarios.logs.directory import parse_seeds
from scenarios.running.protocol import Start
from tui.app import MarketApp
from tui.commands.run import run
from tui.screens.run import RunDialog


async def test_a_run_starts_with_the_seed_that_the_command_line_starts_with(app: MarketApp, scenario_text: str) -> None:
    (first, *others) = parse_seeds(signature(run).parameters["seeds"].default)
    assert (first, others) == (0, [])
    assert Start(scenario_text, "small.toml", "runs").seed == first
    async with app.run_test(size=(100, 30)):
        dialog = RunDialog(parse(scenario_text), scenario_text, "small.toml", app.out)
        await app.push_screen(dialog)
        assert dialog.query_one("#seed", Input).value == str(first)
