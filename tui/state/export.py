"""Files that a screen writes: a run's tables as CSV, and pictures of the screen."""

import csv
import io
from pathlib import Path

from flmarket.analysis.tables import KEYS, TableName, names_with_identity, sweep_text
from flmarket.core.files import replacing, replacing_text
from scenarios.logs.columns import ALL_TABLES
from tui.state.watched_run import Session


def write_csv(session: Session, table: TableName, path: Path) -> int:
    """Write a table of the rounds so far, as ``flmarket export`` writes it for finished runs; return its rows."""
    assert session.scenario is not None  # noqa: S101 - a run that has rounds is known
    keys = [f"{session.scenario.name}-{session.hash8}", session.policy, str(session.seed)]
    keys += map(sweep_text, session.sweep.values())
    count = 0
    with replacing_text(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*KEYS, *session.sweep, *names_with_identity(ALL_TABLES[table])])
        for logged in session.history:
            for row in csv.reader(io.StringIO(logged.text[table])):
                writer.writerow([*keys, *row])
                count += 1
    return count


def write_picture(svg: str, path: Path) -> None:
    """Write a picture of the screen: SVG, or PNG where the optional resvg-py is installed."""
    if path.suffix.lower() == ".png":
        import resvg_py
        from matplotlib import get_data_path

        # Text in a font that is not found is left out, and few machines have those that the picture names. Matplotlib
        # brings one of its own; ``serif`` is where anything else falls back to.
        fonts = Path(get_data_path()) / "fonts" / "ttf"
        picture = resvg_py.svg_to_bytes(
            svg_string=svg, font_dirs=[str(fonts)], monospace_family="DejaVu Sans Mono", serif_family="DejaVu Sans"
        )
        content = bytes(picture)
    else:
        content = svg.encode()
    with replacing(path) as file:
        file.write(content)
