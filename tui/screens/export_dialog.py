"""The export dialog: which table or picture, and the file to write."""

import csv
import io
from importlib.util import find_spec
from pathlib import Path

from textual import on
from textual.app import App, ComposeResult
from textual.widgets import Button, Input, Label, Select, Static

from des.behaviours.behaviour import TRUTHFUL
from flmarket.core.files import replacing, replacing_text
from scenarios.logs.columns import ALL_TABLES, tables_of
from tui.screens.dialog import Box, Dialog
from tui.state.watched_run import Session

PICTURES = {"svg": "picture of the screen, SVG", "png": "picture of the screen, PNG"}


class ExportDialog(Dialog[Path]):
    """Writes the chosen table or picture, and notifies the user of its path."""

    def __init__(self, session: Session | None) -> None:
        """Ask what to write: only pictures where there is no run, as of a comparison."""
        super().__init__()
        self._session = session

    def compose(self) -> ComposeResult:
        known = None if self._session is None else self._session.scenario
        truthful = known is None or known.clients.behaviour.kind == TRUTHFUL
        tables = () if self._session is None else tuple(tables_of(truthful=truthful))
        kinds = [(f"{table}.csv, all rounds so far", table) for table in tables]
        kinds += [(words, kind) for kind, words in PICTURES.items() if kind != "png" or find_spec("resvg_py")]
        with Box():
            yield Static("[b]Export[/b]")
            yield Select(kinds, value=kinds[0][1], allow_blank=False, id="kind", compact=True)
            yield Label("file (replaced if it exists)")
            yield Input(id="path", compact=True)
            yield from self.answers("Write")

    def on_mount(self) -> None:
        self.query_one("#go").focus()

    @on(Select.Changed, "#kind")
    def _propose(self) -> None:
        session, kind = self._session, str(self.query_one("#kind", Select).value)
        if session is None:
            stem = "comparison"
        else:
            name = session.scenario.name if session.scenario else "run"
            stem = f"{name}-{session.policy}-seed{session.seed}"
        self.query_one("#path", Input).value = f"{stem}.{kind}" if kind in PICTURES else f"{stem}-{kind}.csv"

    @on(Button.Pressed, "#go")
    @on(Input.Submitted)
    def _go(self) -> None:
        path = Path(self.query_one("#path", Input).value).expanduser()
        kind = str(self.query_one("#kind", Select).value)
        if not path.name:
            self.show_problem("enter a file name")
            return
        if kind in PICTURES:
            # The picture is of the screen below, so the dialog closes first.
            app = self.app
            self.dismiss(path)
            app.call_after_refresh(_picture, app, path)
            return
        try:
            assert self._session is not None  # noqa: S101 - tables are offered for a run alone
            rows = write_csv(self._session, kind, path)
        except OSError as error:
            self.show_problem(f"{path}: cannot be written: {error.strerror}")
            return
        self.app.notify(f"{path}: {rows} rows of {kind}", title="Exported")
        self.dismiss(path)


def _picture(app: App[object], path: Path) -> None:
    try:
        write_picture(app.export_screenshot(title=str(app.title)), path)
    except (OSError, ImportError) as error:
        app.notify(f"{path}: cannot be written: {error}", severity="error")
    else:
        app.notify(str(path), title="Exported")


def write_csv(session: Session, table: str, path: Path) -> int:
    """Write a table of the rounds so far, as ``flmarket export`` writes it for finished runs; return its rows."""
    from flmarket.analysis.results.export import KEYS, names_with_identity, sweep_text  # with pandas

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
