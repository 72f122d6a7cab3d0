"""The export dialog: which table or picture, and the file to write."""

import io
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.segment import SegmentLines
from textual import on
from textual.app import App, ComposeResult
from textual.widget import Widget
from textual.widgets import Button, Input, Label, Select, Static

from flmarket.core.files import replacing, replacing_text
from scenarios.logs.columns import ALL_TABLES, TABLES, tables_of
from tui.screens.dialog import Box, Dialog
from tui.state.watched_run import Session
from tui.textual_internals import lines_of

FORMATS = {"svg": "SVG", "png": "PNG"} if find_spec("resvg_py") else {"svg": "SVG"}
PART = "-part"  # what the kinds end in that are pictures of a part of the screen


class ExportDialog(Dialog[Path]):
    """Writes the chosen table or picture, and notifies the user of its path."""

    def __init__(self, session: Session | None, part: Widget, called: str) -> None:
        """Ask what to write: only pictures where there is no run, as of a comparison; of the screen, or of a part."""
        super().__init__()
        self._session, self._part, self._called = session, part, called

    def compose(self) -> ComposeResult:
        known = None if self._session is None else self._session.scenario
        tables = TABLES if known is None else tables_of(**known.logged)
        kinds = [(f"{table}.csv, all rounds so far", table) for table in (tables if self._session else ())]
        for shown, end in (("the screen", ""), (f"{self._called} alone", PART)):
            kinds += [(f"picture of {shown}, {words}", f"{kind}{end}") for kind, words in FORMATS.items()]
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
        format_, part = kind.removesuffix(PART), f"-{self._called.lower()}" if kind.endswith(PART) else ""
        path = f"{stem}{part}.{format_}" if format_ in FORMATS else f"{stem}-{kind}.csv"
        self.query_one("#path", Input).value = path.replace(" ", "-")

    @on(Button.Pressed, "#go")
    @on(Input.Submitted)
    def _go(self) -> None:
        path = Path(self.query_one("#path", Input).value).expanduser()
        kind = str(self.query_one("#kind", Select).value)
        if not path.name:
            self.show_problem("enter a file name")
            return
        if kind.removesuffix(PART) in FORMATS:
            # The picture is of the screen below, so the dialog closes first.
            app = self.app
            self.dismiss(path)
            app.call_after_refresh(_picture, app, self._part if kind.endswith(PART) else None, path)
            return
        try:
            assert self._session is not None  # noqa: S101 - tables are offered for a run alone
            rows = write_csv(self._session, kind, path)
        except OSError as error:
            self.show_problem(f"{path}: cannot be written: {error.strerror}")
            return
        self.app.notify(f"{path}: {rows} rows of {kind}", title="Exported")
        self.dismiss(path)


def _picture(app: App[object], part: Widget | None, path: Path) -> None:
    try:
        write_picture(app.export_screenshot(title=str(app.title)) if part is None else svg_of(part), path)
    except (OSError, ImportError) as error:
        app.notify(f"{path}: cannot be written: {error}", severity="error")
    else:
        app.notify(str(path), title="Exported")


def write_csv(session: Session, table: str, path: Path) -> int:
    """Write a table of the rounds so far, as ``flmarket export`` writes it for finished runs; return its rows."""
    import pandas as pd

    from flmarket.analysis.log_frames import write_frame
    from flmarket.analysis.results.export import KEYS, sweep_text, with_identity

    assert session.scenario is not None  # noqa: S101 - a run that has rounds is known
    keys = [f"{session.scenario.name}-{session.hash8}", session.policy, session.seed]
    identity = pd.DataFrame([[*keys, *map(sweep_text, session.sweep.values())]], columns=[*KEYS, *session.sweep])
    text, clients = "".join(logged.text[table] for logged in session.history), session.scenario.clients
    frame = pd.read_csv(io.StringIO(text), names=ALL_TABLES[table].names, dtype=str, keep_default_na=False)
    with replacing_text(path) as file:
        whole = with_identity(identity, frame, clients.group_names() if clients.groups else None)
        write_frame(whole, file)
    return len(frame)


def svg_of(part: Widget) -> str:
    """Return a part of the screen as a picture; Textual has a method for the whole screen alone."""
    left, top, width, height = part.region
    lines = [line.crop(left, left + width) for line in lines_of(part.screen)[top : top + height]]
    console = Console(
        width=width, file=io.StringIO(), force_terminal=True, color_system="truecolor", record=True,
        legacy_windows=False,
    )  # fmt: skip
    console.print(SegmentLines(map(list, lines), new_lines=True), end="")
    return console.export_svg(title=str(part.app.title))


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
