"""Text that can be read: its contrast in every theme that Textual has, as WCAG 2 computes it."""

from collections.abc import Callable, Iterator

import pytest
from rich.color import Color
from rich.style import Style
from textual.theme import BUILTIN_THEMES

from support.screens import watching
from tui.app import MarketApp
from tui.panels.services import STATUS_COLOR
from tui.screens.compare import CompareScreen
from tui.state.watched_run import Session
from tui.style.colors import ANSI_SERIES, SERIES, series_color, tint
from tui.style.formats import per_second
from tui.widgets.key_bar import KeyBar

Play = Callable[..., Session]
LEAST = 4.5
TINTS = {*STATUS_COLOR.values(), "primary", "accent", "success", "warning", "error", "foreground"}
THEMES = sorted(name for name, theme in BUILTIN_THEMES.items() if not theme.ansi)
SIGNS = "●!?◆━→\N{MULTIPLICATION SIGN}"
ANSI = sorted(name for name, theme in BUILTIN_THEMES.items() if theme.ansi)


@pytest.mark.parametrize(("rate", "words"), [(0.25, "0.25"), (5, "5"), (301 / 60, "5.02"), (1000, "1,000")])
def test_a_rate_is_a_plain_number(rate: float, words: str) -> None:
    assert per_second(rate) == words


def contrast(one: Color, other: Color) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(color: Color) -> float:
    parts = [part / 255 for part in color.get_truecolor()]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_contrasts_of_the_test_are_those_of_wcag() -> None:
    white = Color.parse("#ffffff")
    assert contrast(Color.parse("#000000"), white) == pytest.approx(21)
    assert contrast(Color.parse("#777777"), white) == pytest.approx(4.48, abs=0.005)
    assert contrast(Color.parse("#ff0000"), white) == pytest.approx(4.00, abs=0.005)


async def test_every_colour_of_text_is_legible_on_every_background_in_every_theme(app: MarketApp) -> None:
    async with app.run_test() as pilot:
        for theme in THEMES:
            app.theme = theme
            await pilot.pause()
            backgrounds = [
                Color.parse(app.theme_variables[name]) for name in ("background", "surface", "block-cursor-background")
            ]
            colors = {(name, dim): tint(app, name, dim=dim).color for name in TINTS for dim in (False, True)}
            series = [series_color(place) for place in range(len(SERIES))]
            assert len(set(series)) == len(SERIES), theme
            colors |= {(color, False): Color.parse(color) for color in series}
            for name, color in colors.items():
                assert color is not None
                assert min(contrast(color, behind) for behind in backgrounds) >= LEAST, (theme, name)


async def test_in_ansi_themes_the_terminal_chooses_the_colours(app: MarketApp) -> None:
    async with app.run_test() as pilot:
        for theme in ANSI:
            app.theme = theme
            await pilot.pause()
            assert [series_color(place) for place in range(len(ANSI_SERIES))] == list(ANSI_SERIES)
            for name in TINTS:
                color = tint(app, name).color
                assert color is None or color.triplet is None, (theme, name)


def texts(app: MarketApp) -> Iterator[tuple[str, Style]]:
    """What the screen shows above its footer, with its style."""
    bottom = app.screen.query_one(KeyBar).region.y
    for y, strip in enumerate(app.screen._compositor.render_strips()):
        for text, style, _ in strip:
            if y < bottom and any(character.isalnum() or character in SIGNS for character in text):
                assert style is not None
                yield text, style


def illegible(app: MarketApp) -> list[str]:
    found = []
    for text, style in texts(app):
        assert style.color is not None
        assert style.bgcolor is not None
        pair = (style.bgcolor, style.color) if style.reverse else (style.color, style.bgcolor)
        if contrast(*pair) < LEAST:
            found.append(f"{text!r}: {style}, {contrast(*pair):.2f}")
    return found


@pytest.mark.slow
async def test_what_the_screens_show_is_legible_in_every_theme(app: MarketApp, play_small: Play) -> None:
    session = play_small()
    found: dict[str, list[str]] = {}
    async with watching(app, session) as (pilot, _):
        for keys in (["home", "3", "down", *["e"] * 9], ["end", "4", "down"], []):
            await pilot.press(*keys)
            if not keys:
                app.push_screen(CompareScreen([session, play_small(rounds=5)], app))
            for theme in THEMES:
                app.theme = theme
                await pilot.pause(0.2)
                found[f"{theme} {keys}"] = illegible(app)
    assert not {place: texts for place, texts in found.items() if texts}


async def test_a_new_theme_is_shown_at_once(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        await pilot.pause(0.2)
        for theme in ("textual-light", "textual-dark", "solarized-light"):
            app.theme = theme
            await pilot.pause(0.3)
            assert not illegible(app), theme
            behind = Color.parse(app.theme_variables["background"])
            [bar] = screen.query_one("#seek").render_lines(screen.query_one("#seek").size.region)
            assert {segment.style.bgcolor.triplet for segment in bar if segment.style and segment.style.bgcolor} == {
                behind.triplet
            }
