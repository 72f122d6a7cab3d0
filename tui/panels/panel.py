"""A framed part of the market screen, with its own number, key and help, and the messages that such parts send."""

from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Region
from textual.message import Message
from textual.widget import Widget

from tui.state.moment import Moment
from tui.style.formats import plain, shortened

FRAME = 6  # cells of the upper edge that a title does not have


class Panel(Vertical):
    """Shows one aspect of a ``Moment``."""

    NUMBER = 0  # the key that leads here, and the place in ``panels.PANELS``, from 1
    NAME = ""
    SHORT = ""  # in the bar of tabs; empty where it is the name
    HELP = ""
    INSTEAD: tuple[int, ...] = ()  # the panels whose part of the grid it takes while it is shown

    view: Moment | None = None  # what it shows; None before the first round

    _title = _words = ""

    def on_mount(self) -> None:
        self.border_title = f"{self.NUMBER} {self.NAME}"

    def on_resize(self) -> None:
        if self._words:  # before the first layout there was no room for them
            self.entitle(self._words)

    def on_click(self) -> None:
        """Take the focus where its frame, or what else does not take it itself, is clicked."""
        if not self.has_focus_within:
            self.target.focus()

    def show(self, view: Moment) -> None:
        """Show a moment of a run that has begun."""
        self.view = view
        self.draw(view)

    def redraw(self) -> None:
        """Show the same moment in another way."""
        if self.view is not None:
            self.draw(self.view)

    def draw(self, view: Moment) -> None:
        """Show a moment; what has not changed since the last one is drawn again."""
        raise NotImplementedError

    @property
    def target(self) -> Widget:
        raise NotImplementedError

    def entitle(self, words: str) -> None:
        """Add to the panel's name in the title."""
        self._words = words
        title = f"{self.NUMBER} {self.NAME}" + (f" · {words}" if words else "")
        title = shortened(plain(title), self.outer_size.width - FRAME).plain
        if title != self._title:
            self._title = title
            # Setting ``border_title`` would paint the whole panel again in every round.
            self._border_title = Content(title)
            self.refresh(Region(-1, -1, self.outer_size.width, 1))


class Seek(Message):
    """The user wants to see another round."""

    def __init__(self, round_: int) -> None:
        super().__init__()
        self.round = round_


class PanelWanted(Message):
    """The user wants to go to another panel."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class Selected(Message):
    """The user has chosen a client or a service, for all panels. None leaves that choice as it is."""

    def __init__(self, service: int | None = None, client: int | None = None) -> None:
        super().__init__()
        self.service, self.client = service, client
