"""The screens' own table and line of keys against Textual's DataTable and Footer: the computing time of a redraw.

    python benchmarks/tui_widgets.py --repeat 9

With ``--pixels`` the curves against the same in pixels, which needs ``pip install textual-image``.
"""

import argparse
import asyncio
import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.widget import Widget
from textual.widgets import DataTable, Footer, Input

from tui.style.colors import series_color, with_legible_text
from tui.style.formats import TableColumn
from tui.widgets.key_bar import KeyBar
from tui.widgets.plot import Plot
from tui.widgets.table_view import TableView

COUNT = 7  # columns
ROWS = (12, 60, 300)
REDRAWS = 10


class Own(TableView):
    """Numbers that change with every redraw."""

    COLUMNS = tuple(TableColumn(f"c{i}", f"column {i}", right=True) for i in range(COUNT))
    step = 0

    def cells(self, index: int) -> list[Text]:
        return [Text(f"{index * column + self.step:.2f}", end="") for column in range(COUNT)]


class Bare(App[None]):
    """An app with some widgets in it, and keys."""

    BINDINGS = [  # noqa: RUF012 - as Textual has them
        Binding(key, "bell", f"Do {key}") for key in "abcdefghijkl"
    ]

    def __init__(self, *widgets: Widget) -> None:
        super().__init__()
        self.widgets = widgets

    def compose(self) -> ComposeResult:
        yield from self.widgets

    def get_css_variables(self) -> dict[str, str]:
        self.theme_variables = with_legible_text(super().get_css_variables())
        return self.theme_variables


async def painted(app: Bare) -> None:
    for _ in range(4):  # a widget that composes itself anew is there after three
        done = asyncio.Event()
        app.screen.call_after_refresh(done.set)
        await done.wait()


async def timed(
    app: Bare,
    prepare: Callable[[], object],
    redraw: Callable[[], object],
    repeat: int,
    size: tuple[int, int] = (120, 40),
) -> float:
    """Return the CPU milliseconds of a redraw."""
    found = []
    async with app.run_test(size=size):
        prepare()
        await painted(app)
        for _ in range(repeat):
            began = time.process_time()
            for _ in range(REDRAWS):
                redraw()
                await painted(app)
            found.append(1000 * (time.process_time() - began) / REDRAWS)
    return statistics.median(found)


def own_table(rows: int, repeat: int) -> float:
    table = Own()

    def redraw() -> None:
        table.step += 1
        table.rows(rows)

    return asyncio.run(timed(Bare(table), redraw, redraw, repeat))


def data_table(rows: int, repeat: int) -> float:
    table: DataTable[Text] = DataTable(cursor_type="row")
    step = 0

    def cell(row: int, column: int) -> Text:
        return Text(f"{row * column + step:.2f}", justify="right")

    def fill() -> None:
        for column in range(COUNT):
            table.add_column(f"column {column}", key=str(column))
        for row in range(rows):
            table.add_row(*(cell(row, column) for column in range(COUNT)), key=str(row))

    def redraw() -> None:
        nonlocal step
        step += 1
        for row in range(rows):
            for column in range(COUNT):
                table.update_cell(str(row), str(column), cell(row, column))

    return asyncio.run(timed(Bare(table), fill, redraw, repeat))


def keys(bar: Widget, repeat: int) -> float:
    """Return the CPU milliseconds of moving the focus from field to field."""
    app = Bare(Input(), Input(), bar)
    return asyncio.run(timed(app, lambda: None, lambda: app.screen.focus_next(), repeat))


def curves(services: int, rounds: int = 80) -> list[tuple[list[float], list[float]]]:
    xs = [float(n) for n in range(1, rounds + 1)]
    return [(xs, [100 * (1 - math.exp(-n / (8 + 2 * m))) + math.sin(3 * n + m) for n in xs]) for m in range(services)]


def in_cells(services: int, size: tuple[int, int], repeat: int) -> float:
    plot = Plot()

    def redraw() -> None:
        plot.begin(80)
        for m, (xs, ys) in enumerate(curves(services)):
            plot.curve(xs, ys, series_color(m), str(m), f"service {m}")

    return asyncio.run(timed(Bare(plot), lambda: None, redraw, repeat, size))


def in_pixels(kind: str, services: int, size: tuple[int, int], repeat: int) -> float:
    """Return the CPU milliseconds of the curves alone, smooth and without a word, in cells of 10 by 20 pixels."""
    from PIL import Image, ImageDraw
    from textual_image import widget
    from textual_image.renderable import tgp

    tgp._send_tgp_message = lambda **_: None  # nothing is sent: it counts what is computed
    picture: Any = getattr(widget, kind)()
    picture.styles.width, picture.styles.height = size
    width, height = 10 * size[0], 20 * size[1]

    def redraw() -> None:
        drawn = Image.new("RGB", (2 * width, 2 * height), "#121212")
        for m, (xs, ys) in enumerate(curves(services)):
            points = [(2 * width * x / 80, 2 * height * (1 - y / 101)) for x, y in zip(xs, ys, strict=True)]
            ImageDraw.Draw(drawn).line(points, series_color(m), 4, "curve")
        picture.image = drawn.reduce(2)

    return asyncio.run(timed(Bare(picture), lambda: None, redraw, repeat, size))


def pixels(repeat: int) -> None:
    for size in ((120, 40), (200, 60)):
        for services in (3, 12):
            found = [in_pixels(kind, services, size, repeat) for kind in ("TGPImage", "SixelImage")]
            kitty, sixel = (f"{it:.1f}" for it in found)
            cells = f"{in_cells(services, size, repeat):.1f} ms of CPU a redraw"
            print(f"{services} curves on {size[0]}x{size[1]}: in cells {cells}, for kitty {kitty}, as sixel {sixel}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=9, help="repetitions (default 9)")
    parser.add_argument("--pixels", action="store_true", help="curves in cells against those in pixels")
    chosen = parser.parse_args(arguments)
    repeat = chosen.repeat
    if chosen.pixels:
        pixels(repeat)
        return
    for n in ROWS:
        print(
            f"{n} rows, all cells of {COUNT} columns: own table {own_table(n, repeat):.1f} ms of CPU a redraw, ",
            end="",
        )
        print(f"DataTable {data_table(n, repeat):.1f}")
    own, footer = keys(KeyBar(), repeat), keys(Footer(), repeat)
    print(f"moving the focus, twelve keys: own line {own:.1f} ms of CPU, Footer {footer:.1f}")


if __name__ == "__main__":
    main()
