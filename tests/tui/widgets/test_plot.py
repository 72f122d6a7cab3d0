"""The plot: targets behind the curves, and a sign where each curve ends."""

from collections.abc import Callable

from textual.pilot import Pilot
from textual_hires_canvas import Canvas

from support.screens import watching
from tui.app import MarketApp
from tui.screens.compare import CompareScreen
from tui.watching.session import Session
from tui.widgets.plot import DASH, Plot

Play = Callable[..., Session]


def inside(app: MarketApp) -> list[str]:
    """What the plot shows inside its frame, line by line."""
    canvas = app.screen.query_one(Plot).query_one("#plot", Canvas)
    height, width = canvas.size.height, canvas.size.width
    return ["".join(canvas.get_pixel(x, y)[0] for x in range(1, width - 1)) for y in range(1, height - 1)]


def signs(app: MarketApp) -> set[str]:
    return {character for line in inside(app) for character in line if character.isalnum()}


async def settled(pilot: Pilot[None]) -> None:
    await pilot.pause(0.2)  # longer than a redraw is put off


async def test_each_curve_ends_in_its_sign_in_the_last_round_of_the_axis_too(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        await settled(pilot)
        assert screen.head.round == 12
        assert signs(app) == {"1", "2", "3"}
        assert {line[-1] for line in inside(app) if line[-1].isalnum()} == {"1", "2", "3"}
        await pilot.press("home")  # a curve of one round is its sign
        await settled(pilot)
        assert signs(app) == {"1", "2", "3"}


async def test_signs_of_curves_that_end_in_one_place_stand_beside_each_other(
    app: MarketApp, play_small: Play, scenario_text: str
) -> None:
    session = play_small()
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(CompareScreen([session] * 9, app))
        await settled(pilot)
        assert signs(app) == set("123456789")


async def test_targets_are_lines_at_every_size_and_in_every_round(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small(), (80, 24)) as (pilot, _):
        await pilot.press("2")
        for size in ((80, 24), (120, 36), (200, 60), (130, 40)):
            await pilot.resize_terminal(*size)
            for key in ("home", "right", "}", "end"):
                await pilot.press(key)
                await settled(pilot)
                targets = [line for line in inside(app) if DASH in line]
                assert len(targets) in {2, 3}, (size, key)  # two of them are near each other
                assert all(" " not in line for line in targets), (size, key)


async def test_targets_in_one_line_take_turns(app: MarketApp, play_small: Play, scenario_text: str) -> None:
    session = play_small(scenario_text.replace("target_accuracy = 0.95", "target_accuracy = 0.9"))
    async with watching(app, session) as (pilot, screen):
        await settled(pilot)
        canvas = screen.query_one(Plot).query_one("#plot", Canvas)
        place = next(y for y, line in enumerate(inside(app), start=1) if DASH in line)
        styles = {style for x in range(1, canvas.size.width - 1) for _, style in [canvas.get_pixel(x, place)] if style}
        assert len(styles) >= 2
