"""The style and formats of all figures, a report's and a league's, and the code that writes them.

matplotlib is imported when a figure is asked for. No figure is one of pyplot's, so none needs a screen or a backend.
"""

import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flmarket.core.errors import InputError
from flmarket.core.files import replacing
from flmarket.core.tracking import tracked

FORMATS = ("svg", "png", "pdf")

DPI = 200  # of PNG files, and of dots that are too many to be drawn one by one in the others

SETTINGS: Any = {
    "figure.dpi": 100, "font.size": 8, "axes.titlesize": "medium", "lines.linewidth": 1.2,
    "axes.grid": True, "grid.alpha": 0.3,
    "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False, "svg.hashsalt": "flmarket",
    "pdf.fonttype": 42,  # TrueType, as journals ask for; Type 3 otherwise
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure that can be drawn."""

    name: str  # the name of its files
    caption: str  # what it shows
    draw: Callable[[], Any]  # returns a matplotlib figure


def save(figures: Iterable[Figure], folder: Path) -> list[Path]:
    """Write figures as SVG, PNG and PDF; return the paths."""
    paths = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for figure in tracked(list(figures), "figures"):
            for suffix in FORMATS:
                paths.append(folder / f"{figure.name}.{suffix}")
            for path, content in zip(paths[-len(FORMATS) :], images(figure, FORMATS), strict=True):
                with replacing(path) as file:
                    file.write(content)
    except OSError as error:
        raise InputError(f"{error.filename or folder}: cannot be written: {error.strerror}") from error
    return paths


def images(figure: Figure, formats: Sequence[str]) -> list[bytes]:
    """Return a figure in some formats. The same figure gives the same bytes."""
    import matplotlib as mpl

    found = []
    with mpl.rc_context(SETTINGS):
        drawn = figure.draw()
        for suffix in formats:
            # Without a date, the same runs give the same files.
            metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[suffix]
            target = io.BytesIO()
            drawn.savefig(target, format=suffix, metadata=metadata, dpi=DPI)
            found.append(target.getvalue())
            drawn.set_layout_engine(None)  # the other formats keep the first one's layout, which takes long to find
    return found
