"""The slot as a Gantt chart: what each core of each client did, and when."""

from collections.abc import Mapping, Sequence

import numpy as np
from rich.text import Text
from textual.app import ComposeResult

from des.clock import Microseconds
from des.log_records import Kind, OfferReport, Outcome
from des.money import MICRO
from flmarket.core.text import counted
from tui.panels.panel import Panel, Selected
from tui.state.moment import Moment
from tui.style.colors import series_color, sign, tint
from tui.style.formats import BLOCKS, fit, plain, seconds
from tui.widgets.line_view import GUTTER, LineView

LABEL = 13
LEAST = 3  # rows from which on a chart below the jobs says something
HEIGHTS = f" {BLOCKS}"


class CoreLines(LineView):
    """One line for each core that worked in the round."""

    _jobs: Sequence[OfferReport] = ()
    _trained: Mapping[tuple[str, int], Microseconds] = {}  # when a service's client had trained
    _places: Mapping[str, int] = {}  # of the services
    _span = (0, MICRO)
    _now: Microseconds | None = None
    _drawn: object = None
    _busy = np.zeros(0, int)  # the cores in use at the time of each cell; empty before the chart is drawn
    _client: int | None = None  # that is chosen on the screen

    def show(self, view: Moment) -> None:
        """Show the jobs of a round; in a walk, up to the present moment."""
        self._now = None if view.event is None else view.clock
        known = view.event is None or view.allocated
        drawn = (view.session, view.round, known)
        if drawn != self._drawn:
            self._drawn = drawn
            self._read(view, known=known)
        self.resize(len(self._jobs), self.room)
        self._client = view.client
        chosen = [i for i, job in enumerate(self._jobs) if job.client == view.client]
        if chosen:
            self.cursor = next((i for i in chosen if self._places[self._jobs[i].service] == view.service), chosen[0])

    def is_chosen(self, index: int) -> bool:
        return self._jobs[index].client == self._client

    def choose(self) -> None:
        if self._jobs:
            job = self._jobs[self.cursor]
            self.post_message(Selected(self._places[job.service], job.client))

    def _read(self, view: Moment, *, known: bool) -> None:
        """Read a round's jobs; none as long as it is not known which clients get one."""
        jobs = [offer for offer in view.logged.offers if offer.core is not None and offer.start is not None]
        self._places = {row.service: m for m, row in enumerate(view.logged.services)}
        self._trained = {
            (event.service or "", event.client): event.sim_time
            for event in view.events
            if event.event is Kind.TRAIN_END and event.client is not None
        }
        starts = [job.start for job in jobs if job.start is not None]
        ends = [job.end for job in jobs if job.end is not None]
        self._span = (min(starts, default=0), max(ends, default=MICRO))
        self._jobs = sorted(jobs, key=lambda job: (job.client, job.core)) if known else []
        self._busy = self._busy[:0]

    @property
    def _room(self) -> int:
        return max(8, self._wide - GUTTER - LABEL)

    def head(self) -> tuple[Text, Text]:
        first, last = self._span
        left, right = seconds(first / MICRO), seconds(last / MICRO)
        middle = f"▶ {seconds(self._now / MICRO)}" if self._now is not None else f"←{(last - first) / MICRO:.2f} s→"
        line = left + middle.center(self._room - len(left) - len(right)) + right
        if len(line) > self._room:  # no room for all three
            line = f"{left.removesuffix(' s')}–{right}" if self._now is None else middle
        return plain(fit("client core", LABEL), "bold"), plain(line, "bold")

    def line(self, index: int) -> tuple[Text, Text]:
        job = self._jobs[index]
        again = index > 0 and self._jobs[index - 1].client == job.client
        place = self._places.get(job.service, 0)
        label = plain(f"{'' if again else job.client:>6} {job.core:>3} ")
        label.append(f"{sign(place)} ", series_color(place))
        first, last = self._span
        scale = self._room / max(last - first, 1)
        end = last if job.end is None else job.end
        now = last if self._now is None else self._now
        trained = self._trained.get((job.service, job.client), end)
        start = round(((job.start or first) - first) * scale)
        turn, stop = round((min(trained, now) - first) * scale), round((min(end, now) - first) * scale)
        work = max(0, turn - start)
        bar = Text(" " * start, end="", no_wrap=True)
        if work > 2:
            bar.append(fit(job.service, work), f"reverse {series_color(place)}")
        else:
            bar.append("█" * work, series_color(place))
        bar.append("▒" * max(0, stop - max(turn, start)), series_color(place))
        if job.outcome is Outcome.DROPPED and now >= end:
            bar.append(" ! dropped", tint(self.app, "warning"))
        elif now >= end and stop + len(took := f" {(end - (job.start or first)) / MICRO:.2f} s") <= self._room:
            bar.append(took, tint(self.app, "foreground", dim=True))
        return label, bar

    def under(self, row: int) -> tuple[Text, Text] | None:
        """Return a line of the chart of the cores in use, once the round is over, in the room below the jobs."""
        rows = self.size.height - self.HEADER - self.count
        if self._now is not None or not self._jobs or rows < LEAST:
            return None
        if len(self._busy) != self._room:
            first, last = self._span
            times = first + (last - first) * (np.arange(self._room) + 0.5) / self._room
            spans = [(job.start or first, last if job.end is None else job.end) for job in self._jobs]
            self._busy = np.sum([(start <= times) & (times < end) for start, end in spans], axis=0)
        most = self._busy.max()
        top = most * (rows - row) / rows
        heights = np.clip(len(BLOCKS) * (1 - (top - self._busy) * rows / most), 0, len(BLOCKS)).round().astype(int)
        label = plain(fit(f"{top:>6.0f}{' used' * (not row)}", LABEL))
        return label, plain("".join(HEIGHTS[height] for height in heights), tint(self.app, "primary"))


class CoresPanel(Panel):
    """Shows what the cores did in the round."""

    NUMBER = 6
    NAME = "Cores"
    HELP = """The slot on the simulated clock. Each line is one core of a client that was awarded a job, with the sign
of the service. The block is local training for it; [b]▒[/b] is the upload of the update. A service waits for its last
client. Where there is room, a chart below has the number of cores in use at each time.

In a walk through events (e), the chart grows with the clock."""

    def compose(self) -> ComposeResult:
        yield CoreLines(id="core-lines")

    @property
    def target(self) -> CoreLines:
        return self.query_one(CoreLines)

    def draw(self, view: Moment) -> None:
        self.target.show(view)
        jobs = sum(offer.core is not None for offer in view.logged.offers)
        self.entitle(counted(jobs, "job"))
