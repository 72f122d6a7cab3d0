"""The events of a round, with a filter."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Input

from des.log_records import Kind, MarketEvent
from des.money import MICRO
from tui.panels.panel import Panel, Selected
from tui.state.moment import Moment
from tui.style.colors import series_color, tint
from tui.style.formats import fit, matches, plain, wrapped
from tui.style.sentences import event_words
from tui.widgets.line_view import LineView

KIND = 12  # width of the column with the kind of an event
ROOMY = 58  # cells from which on there is such a column; the sentence next to it says the same
MOST_WRAPPED = 4_000  # events beyond which each has one line, so that only those on the screen are put in words


class EventLines(LineView):
    """The events, each on as many lines as its sentence takes; of a large round, each on one."""

    BINDINGS = [Binding("slash", "screen.filter_events", "Filter", tooltip="Filter the events by words")]

    HEADER = 0
    events: Sequence[MarketEvent] = ()

    _places: Mapping[str, int] = {}  # of the services
    _lines: Sequence[int] = ()  # of each: the event
    _told: dict[int, list[str]]  # the lines of the events that have been put in words
    client: int | None = None  # that is chosen on the screen

    def show(self, events: Sequence[MarketEvent], services: list[str], cursor: int | None) -> None:
        """Show events, with the cursor on the one at place ``cursor`` if given, else on that which is chosen."""
        chosen = self.events[self._lines[self.cursor]] if self._lines else None
        if cursor is None and chosen in events:
            cursor = events.index(chosen)
        self.events, self._places = events, {name: m for m, name in enumerate(services)}
        self._label = max((len(f"{event.sim_time / MICRO:.2f}") for event in events[-1:]), default=0) + 1
        self._kind = KIND * (self.room >= ROOMY)
        self._told, self._room = {}, max(8, self.room - self._label - self._kind)
        if len(events) > MOST_WRAPPED:
            self._lines = range(len(events))
        else:
            self._lines = [place for place in range(len(events)) for _ in self._sentence(place)]
        self.resize(len(self._lines), self.room)
        if cursor is not None:
            self.cursor = bisect_left(self._lines, cursor)

    def _sentence(self, place: int) -> list[str]:
        """Return the lines of an event."""
        if place not in self._told:
            words = event_words(self.events[place])
            fits = len(words) <= self._room or len(self.events) > MOST_WRAPPED  # names have plain letters only
            self._told[place] = [words] if fits else list(wrapped(words, self._room))
        return self._told[place]

    def on_resize(self) -> None:
        self.show(self.events, list(self._places), None)

    def line(self, index: int) -> tuple[Text, Text]:
        place = self._lines[index]
        event, part = self.events[place], index - bisect_left(self._lines, place)
        time, kind = ("", "") if part else (f"{event.sim_time / MICRO:.2f} ", event.event.value)
        label = plain(f"{time:>{self._label}}", tint(self.app, "foreground", dim=True))
        strong = event.event in {Kind.EXIT, Kind.EVALUATE}
        label.append(fit(kind, self._kind), tint(self.app, "success" if strong else "foreground"))
        color = "" if event.service is None else series_color(self._places.get(event.service, 0))
        return label, plain(self._sentence(place)[part], color)

    def action_move(self, lines: int) -> None:
        """Move the cursor, at least by an event: down to its last line, up to its first, which is then seen."""
        if not self._lines:
            return
        here, down = self._lines[self.cursor], lines > 0
        there = self._lines[max(0, min(self.count - 1, self.cursor + lines))]
        place = min(len(self.events) - 1, max(here + 1, there)) if down else max(0, min(here - 1, there))
        self.go_to(bisect_right(self._lines, place) - 1 if down else bisect_left(self._lines, place))

    def at_cursor(self, index: int) -> bool:
        return self._lines[index] == self._lines[self.cursor]

    def is_chosen(self, index: int) -> bool:
        return self.events[self._lines[index]].client == self.client is not None

    def choose(self) -> None:
        event = self.events[self._lines[self.cursor]] if self._lines else None
        if event is not None and event.service is not None:
            self.post_message(Selected(self._places[event.service], event.client))


class EventsPanel(Panel):
    """Lists what happened in the round, in order."""

    NUMBER = 5
    NAME = "Events"
    HELP = """The round's timeline on the simulated clock: refresh, bids, decisions, awards, training, payments, exits.

A filter has words that must all occur, such as [i]client 4[/i] or [i]award digits[/i]; [b]enter[/b] keeps it, and
[b]esc[/b] clears it. In a walk through the events, all panels show the market at that moment."""

    def __init__(self) -> None:
        super().__init__()
        self.wanted: tuple[str, ...] = ()

    def compose(self) -> ComposeResult:
        yield Input(placeholder="filter: client 4, award, digits …", id="event-filter", compact=True)
        yield EventLines(id="event-lines")

    @property
    def target(self) -> EventLines:
        return self.query_one(EventLines)

    def draw(self, view: Moment) -> None:
        shown = view.events if view.event is None else view.events[: view.event]
        if self.wanted:
            shown = tuple(each for each in shown if matches(f"{each.event.value} {event_words(each)}", self.wanted))
        names = [row.service for row in view.logged.services]
        cursor = None if view.event is None else len(shown) - 1
        if cursor is None and view.client is not None and not self.target.has_focus:
            of_client = [place for place, event in enumerate(shown) if event.client == view.client]
            own = (place for place in of_client if shown[place].service == names[view.service])
            cursor = next(own, next(iter(of_client), None))
        self.target.client = view.client
        self.target.show(shown, names, cursor)
        count = f"{len(shown)} of {len(view.events)}" if len(shown) < len(view.events) else str(len(shown))
        self.entitle(f"{count}, round {view.round}" + (f', "{" ".join(self.wanted)}"' if self.wanted else ""))

    def open_filter(self) -> None:
        """Show the field for the filter's words."""
        self.add_class("-filtering")
        self.query_one(Input).focus()

    @on(Input.Changed)
    def _filter(self, event: Input.Changed) -> None:
        event.stop()
        self.wanted = tuple(event.value.lower().split())
        self.redraw()

    @on(Input.Submitted)
    def _keep(self, event: Input.Submitted) -> None:
        event.stop()
        self.target.focus()

    def close_filter(self) -> bool:
        """Clear the filter; return whether there was one."""
        if not self.has_class("-filtering"):
            return False
        self.query_one(Input).value = ""
        self.remove_class("-filtering")
        self.target.focus()
        return True
