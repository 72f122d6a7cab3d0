"""Text that can be read, its contrast in every theme as WCAG 2 computes it; the row that is chosen; and no colours."""

from collections.abc import Iterator
from itertools import pairwise
from math import atan2, cbrt, degrees, hypot
from pathlib import Path

import pytest
from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.theme import BUILTIN_THEMES
from textual.widget import Widget

from learning.policy import POLICIES
from support.screens import Play, strips, until, watching
from tui.app import MarketApp
from tui.panels.services import STATUS_COLOR, ServicesTable
from tui.screens.compare import CompareScreen
from tui.state.known_runs import PAPER_POLICIES
from tui.style.colors import ANSI_SERIES, BAR, SERIES, contrast, policy_places, series_color, tint
from tui.style.formats import per_second
from tui.widgets.comparison import CompareTable
from tui.widgets.entry_list import EntryList
from tui.widgets.key_bar import KeyBar

LEAST = 4.5
APART = 24.0
"""Degrees between the hues of any two of ten services; 36 are the most that is possible."""
COLOURFUL = 0.055
"""The chroma from which on one sees a hue; that of grey is 0."""
TINTS = {*STATUS_COLOR.values(), "primary", "accent", "success", "warning", "error", "foreground"}
THEMES = sorted(name for name, theme in BUILTIN_THEMES.items() if not theme.ansi)
SIGNS = "●!?◆━→\N{MULTIPLICATION SIGN}"
ANSI = sorted(name for name, theme in BUILTIN_THEMES.items() if theme.ansi)


@pytest.mark.parametrize(("rate", "words"), [(0.25, "0.25"), (5, "5"), (301 / 60, "5.02"), (1000, "1,000")])
def test_a_rate_is_a_plain_number(rate: float, words: str) -> None:
    assert per_second(rate) == words


def ratio(one: Color, other: Color) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(color: Color) -> float:
    parts = [part / 255 for part in color.get_truecolor()]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_contrasts_of_the_test_are_those_of_wcag() -> None:
    white = Color.parse("#ffffff")
    assert ratio(Color.parse("#000000"), white) == pytest.approx(21)
    assert ratio(Color.parse("#777777"), white) == pytest.approx(4.48, abs=0.005)
    assert ratio(Color.parse("#ff0000"), white) == pytest.approx(4.00, abs=0.005)


@pytest.mark.slow
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
                assert min(ratio(color, behind) for behind in backgrounds) >= LEAST, (theme, name)
        # In ansi themes the terminal chooses the colours.
        for theme in ANSI:
            app.theme = theme
            await pilot.pause()
            assert [series_color(place) for place in range(len(ANSI_SERIES))] == list(ANSI_SERIES)
            for name in TINTS:
                color = tint(app, name).color
                assert color is None or color.triplet is None, (theme, name)


def oklab(color: str) -> tuple[float, float]:
    """The place of a colour on the plane of hues, after Ottosson's OKLab: red and green, yellow and blue."""
    parts = [part / 255 for part in Color.parse(color).get_truecolor()]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    long = cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue)
    middle = cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue)
    short = cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue)
    a = 1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * short
    return a, 0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * short


@pytest.mark.slow
async def test_services_are_told_apart_by_hue_in_every_theme(app: MarketApp) -> None:
    async with app.run_test() as pilot:
        for theme in THEMES:
            app.theme = theme
            await pilot.pause()
            places = [oklab(series_color(place)) for place in range(len(SERIES))]
            assert min(hypot(*place) for place in places) > COLOURFUL, theme
            hues = sorted(degrees(atan2(b, a)) % 360 for a, b in places)
            assert min(later - hue for hue, later in pairwise([*hues, hues[0] + 360])) > APART, theme


def texts(app: MarketApp) -> Iterator[tuple[str, Style]]:
    """What the screen shows above its footer, with its style."""
    bottom = app.screen.query_one(KeyBar).region.y
    for y, strip in enumerate(strips(app)):
        for text, style, _ in strip:
            if y < bottom and any(character.isalnum() or character in SIGNS for character in text):
                yield text, style


def illegible(app: MarketApp) -> list[str]:
    found = []
    for text, style in texts(app):
        pair = (style.bgcolor, style.color) if style.reverse else (style.color, style.bgcolor)
        if ratio(*pair) < LEAST:
            found.append(f"{text!r}: {style}, {ratio(*pair):.2f}")
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


@pytest.mark.slow
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


def styles(app: MarketApp) -> set[Style | None]:
    """The styles that reach the terminal."""
    return {segment.style for strip in strips(app) for segment in strip}


def is_grey(style: Style | None) -> bool:
    """Whether a style's colours are shades of grey."""
    colors = [] if style is None else [color for color in (style.color, style.bgcolor) if color is not None]
    return all(color.triplet is None or len(set(color.triplet)) == 1 for color in colors)


@pytest.mark.slow
async def test_replay_and_comparison_are_shown_in_grey(
    small: Path, play_small: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seek bar and the canvas of the plots have text without a style of its own."""
    monkeypatch.setenv("NO_COLOR", "1")
    app = MarketApp(out=small / "runs", folder=small)
    session = play_small()
    async with watching(app, session) as (pilot, screen):
        await pilot.press("1", "down")
        await pilot.pause()
        assert in_reverse_video(chosen_row(screen.query_one(ServicesTable)))
        await pilot.press("home", "right", "e", "m", "2", "v", "m")
        assert all(map(is_grey, styles(app)))
        app.push_screen(CompareScreen([session, play_small(rounds=3)], app))
        await pilot.pause()
        assert all(map(is_grey, styles(app)))


SEEN = 1.05
"""The contrast from which on two backgrounds are seen to differ."""


def chosen_row(widget: Widget) -> list[Segment]:
    """The cells of the one line of a widget that has the bar, as they are drawn."""
    widget.render_lines(widget.size.region)  # which looks up what the lines need
    rows = [list(widget.render_line(y)) for y in range(widget.size.height)]
    [row] = [row for row in rows if row[0].text.startswith(BAR)]
    return row


def looks(row: list[Segment]) -> set[tuple[object, bool]]:
    """The backgrounds of a line, and whether they are in reverse video."""
    return {(style.bgcolor, bool(style.reverse)) for _, style, _ in row if style is not None}


def in_reverse_video(row: list[Segment]) -> bool:
    """Whether all of a line is, in one colour."""
    styles = {(bool(style.reverse), style.color) for _, style, _ in row if style is not None}
    return len(styles) == 1 and all(reverse for reverse, _ in styles)


@pytest.mark.slow
async def test_in_every_theme_the_chosen_row_has_one_background_one_sees(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        await pilot.press("1", "down")
        table = screen.query_one(ServicesTable)
        for theme in sorted(set(BUILTIN_THEMES) - set(ANSI)):
            app.theme = theme
            await pilot.pause()
            row = chosen_row(table)
            tint = app.theme_variables["block-cursor-background"]
            assert contrast(tint, app.theme_variables["background"]) >= SEEN, theme
            assert {color.get_truecolor().hex.upper() for color, _ in looks(row) if color} == {tint.upper()}, theme
            assert {reverse for _, reverse in looks(row)} == {False}, theme
            colors = {style.color for _, style, _ in row[1:] if style is not None}
            assert len(colors) > 2, theme  # the text keeps its own; a missed target looks like a warning


@pytest.mark.slow
async def test_tables_and_lists_show_it_alike(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        await pilot.press("1", "down")
        found = [looks(chosen_row(screen.query_one(ServicesTable)))]
        app.push_screen(CompareScreen([play_small(), play_small(rounds=5)], app))
        await pilot.pause(0.3)
        found.append(looks(chosen_row(app.screen.query_one(CompareTable))))
        app.pop_screen()
        app.pop_screen()
        await until(pilot, lambda: app.home.entries, "the lists at home")
        await pilot.pause(0.3)
        found.append(looks(chosen_row(app.screen.query_one(EntryList))))
        assert len(found[0]) == 1
        assert found == [found[0]] * 3


async def test_in_themes_without_colours_of_ours_all_of_it_is_in_reverse(app: MarketApp, play_small: Play) -> None:
    async with watching(app, play_small()) as (pilot, screen):
        await pilot.press("1", "down")
        for theme in ANSI:
            app.theme = theme
            await pilot.pause()
            assert in_reverse_video(chosen_row(screen.query_one(ServicesTable)))


def test_a_policy_has_its_colour_in_any_company() -> None:
    others = ("as-configured", "oort", "greedy", "worth")
    alone = {name: policy_places([name])[name] for name in (*PAPER_POLICIES, *others)}
    for company in ((), PAPER_POLICIES[:2], PAPER_POLICIES):
        assert all(policy_places([name, *company])[name] == place for name, place in alone.items())
    policies = POLICIES.names()
    assert len(set(policy_places(policies[:6]).values())) == 6  # no two of them share one
    assert set(policy_places(policies).values()) == set(range(len(SERIES)))
