"""The dialog that starts runs."""

from pathlib import Path

from textual.widgets import Button, SelectionList, Static

from scenarios.loader import parse
from tui.app import MarketApp
from tui.screens.run import RunDialog


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
