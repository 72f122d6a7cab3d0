"""Tables: what is copied for other programs."""

from collections.abc import Callable

from support.screens import until
from tui.app import MarketApp
from tui.screens.market import MarketScreen
from tui.state.watched_run import Session


async def test_a_row_or_the_whole_table_is_copied(app: MarketApp, play_small: Callable[..., Session]) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        app.show_market(play_small())
        await until(pilot, lambda: isinstance(app.screen, MarketScreen) and app.screen.focused is not None)
        await pilot.press("down", "y")
        row = app.clipboard.split("\t")
        assert (row[0], row[1]) == ("2", "beta")
        await pilot.press("Y")
        titles, *rows = app.clipboard.splitlines()
        assert titles.startswith("#\tservice\tstatus")
        assert [line.split("\t")[1] for line in rows] == ["alpha", "beta", "gamma"]
