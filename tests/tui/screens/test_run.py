"""The dialog before a run."""

from collections.abc import Callable
from inspect import signature
from pathlib import Path

from textual.widgets import Button, Input, SelectionList, Static

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


async def test_a_policy_for_all_that_the_sweep_speaks_against_cannot_be_run(
    app: MarketApp, one_service: str, tmp_path: Path
) -> None:
    text = one_service + '[sweep]\n"services.alpha.policy" = ["random", "hqfa"]\n'
    async with app.run_test(size=(100, 40)) as pilot:
        dialog = RunDialog(parse(text), text, "swept.toml", tmp_path)
        app.push_screen(dialog)
        await pilot.pause()
        assert not dialog.query_one("#go", Button).disabled
        dialog.query_one(SelectionList).select("lcfa")
        await pilot.pause()
        assert dialog.query_one("#go", Button).disabled
        said = str(dialog.query_one("#run-problem", Static).render())
        assert "the sweep's value 'random' asks for another policy; leave one of them out" in " ".join(said.split())
        dialog.query_one(SelectionList).deselect("lcfa")
        await pilot.pause()
        assert not dialog.query_one("#go", Button).disabled


async def test_a_policy_of_a_broken_package_is_named_and_cannot_be_run(
    app: MarketApp, scenario_text: str, install_package: Callable[..., None]
) -> None:
    install_package("acme_broken", "import no_such_module", "flmarket.policies", broken="acme_broken:Mine")
    async with app.run_test(size=(100, 40)) as pilot:
        dialog = RunDialog(parse(scenario_text), scenario_text, "small.toml", app.out)
        app.push_screen(dialog)
        await pilot.pause()
        dialog.query_one(SelectionList).select("broken")
        await pilot.pause()
        assert dialog.query_one("#go", Button).disabled
        shown = " ".join(str(dialog.query_one("#run-problem", Static).render()).split())
        assert "policy 'broken' (acme_broken:Mine of acme_broken 1.5): cannot be imported: ModuleNotFoundError" in shown
        dialog.query_one(SelectionList).deselect("broken")
        await pilot.pause()
        assert not dialog.query_one("#go", Button).disabled
