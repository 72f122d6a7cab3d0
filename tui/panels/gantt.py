"""The slot as a Gantt chart: what each core of each client did, and when."""

from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np
from rich.text import Text
from textual.app import ComposeResult

from des.clock import Microseconds
from des.log_records import Kind, OfferReport, Outcome
from des.money import MICRO, to_micro
from flmarket.core.text import counted
from tui.panels.panel import Panel, Selected
from tui.state.moment import Moment
from tui.style.colors import series_color, sign, tint
from tui.style.formats import BLOCKS, fit, plain, seconds
from tui.widgets.line_view import GUTTER, LineView

LABEL = 13
SLOTS, MOST = 30, 60  # of which the jobs are shown where work outlasts rounds; and the most rounds in them
LEAST = 3  # rows from which on a chart below the jobs says something
HEIGHTS = f" {BLOCKS}"


class CoreLines(LineView):
    """One line for each core that worked: in the round, or in the last ones where work outlasts rounds."""

    _cores: Sequence[Sequence[OfferReport]] = ()  # of each line, the jobs of its core in their order
    _trained: Mapping[tuple[str, int], Microseconds] = {}  # when a service's client had trained
    _places: Mapping[str, int] = {}  # of the services
    _span = (0, MICRO)
    _now: Microseconds | None = None
    _drawn: object = None
    _busy = np.zeros(0, int)  # the cores in use at the time of each cell; empty before the chart is drawn
    _client: int | None = None  # that is chosen on the screen

    def show(self, view: Moment) -> None:
        """Show the jobs of a round; in a walk, up to the present moment."""
        going = view.logged.goes_on
        self._now = None if view.event is None else view.clock
        known = view.event is None or view.allocated or going
        drawn = (view.session, view.round, known, going and view.clock)
        if drawn != self._drawn:
            self._drawn = drawn
            self._read(view, known=known)
        self.resize(len(self._cores), self.room)
        self._client = view.client
        chosen = [i for i in range(self.count) if self.is_chosen(i)]
        if chosen:
            name = view.logged.services[view.service].service
            own = (i for i in chosen if any(job.service == name for job in self._cores[i]))
            self.cursor = next(own, chosen[0])

    def is_chosen(self, index: int) -> bool:
        return self._cores[index][0].client == self._client

    def choose(self) -> None:
        if self._cores:
            job = self._cores[self.cursor][-1]
            self.post_message(Selected(self._places[job.service], job.client))

    def _read(self, view: Moment, *, known: bool) -> None:
        """Read a round's jobs; none as long as it is not known which clients get one."""
        history = view.session.history
        self._places = {row.service: m for m, row in enumerate(view.logged.services)}
        self._trained = {}
        if view.logged.goes_on:
            first = _first(view)
            begun = (offer for number in range(first, view.round + 1) for offer in history[number].offers)
            own = (*history.at_work(first - 1), *begun)
            jobs = [it for it in own if it.start is not None and it.start <= view.clock]
            self._span = (history[first - 1].end if first > 1 else 0, view.clock)
        else:
            self._trained = {
                (event.service or "", event.client): event.sim_time
                for event in view.events
                if event.event is Kind.TRAIN_END and event.client is not None
            }
            jobs = [it for it in view.logged.offers if it.start is not None and it.core is not None]
            starts, ends = [it.start or 0 for it in jobs], [it.end or 0 for it in jobs]
            self._span = (min(starts, default=0), max(ends, default=MICRO))
        jobs.sort(key=lambda job: (job.client, job.core, job.start))
        cores = groupby(jobs if known else (), key=lambda job: (job.client, job.core))
        self._cores = [list(of_core) for _, of_core in cores]
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
        jobs = self._cores[index]
        again = index > 0 and self._cores[index - 1][0].client == jobs[0].client
        place = self._places.get(jobs[-1].service, 0)
        label = plain(f"{'' if again else jobs[0].client:>6} {jobs[0].core:>3} ")
        label.append(f"{sign(place)} ", series_color(place))
        bar = Text(end="", no_wrap=True)
        for job in jobs:
            self._draw(job, bar, alone=len(jobs) == 1)
        return label, bar

    def _draw(self, job: OfferReport, bar: Text, *, alone: bool) -> None:
        """Add a job to what its core did before."""
        first, until = self._span
        place, scale = self._places.get(job.service, 0), self._room / max(until - first, 1)
        begin, end = max(job.start or 0, first), job.end or 0
        now = until if self._now is None else self._now
        trained = self._trained.get((job.service, job.client), end)
        start = max(len(bar), round((begin - first) * scale))
        turn, stop = round((min(trained, now) - first) * scale), round((min(end, now) - first) * scale)
        work = max(0, turn - start)
        bar.append(" " * (start - len(bar)))
        if work > 2 or not alone:
            words = job.service if alone or len(job.service) <= work else sign(place)
            bar.append(fit(words, work), f"reverse {series_color(place)}")
        else:
            bar.append("█" * work, series_color(place))
        bar.append("▒" * max(0, stop - max(turn, start)), series_color(place))
        if job.outcome is Outcome.DROPPED and now >= end:
            bar.append(" ! dropped" if alone else "!", tint(self.app, "warning"))
        elif alone and now >= end and stop + len(took := f" {(end - (job.start or 0)) / MICRO:.2f} s") <= self._room:
            bar.append(took, tint(self.app, "foreground", dim=True))

    def under(self, row: int) -> tuple[Text, Text] | None:
        """Return a line of the chart of the cores in use, once the round is over, in the room below the jobs."""
        rows = self.size.height - self.HEADER - self.count
        if self._now is not None or not self._cores or rows < LEAST:
            return None
        if len(self._busy) != self._room:
            first, last = self._span
            times = first + (last - first) * (np.arange(self._room) + 0.5) / self._room
            spans = [(job.start or 0, job.end or 0) for own in self._cores for job in own]
            self._busy = np.sum([(start <= times) & (times < end) for start, end in spans], axis=0)
        most = max(1, self._busy.max())
        top = most * (rows - row) / rows
        heights = np.clip(len(BLOCKS) * (1 - (top - self._busy) * rows / most), 0, len(BLOCKS)).round().astype(int)
        label = plain(fit(f"{top:>6.0f}{' used' * (not row)}", LABEL))
        return label, plain("".join(HEIGHTS[height] for height in heights), tint(self.app, "primary"))


def _first(view: Moment) -> int:
    """Return the first round of which something is shown, where work outlasts rounds."""
    slot = to_micro((view.scenario and view.scenario.timeline.slot) or 0)
    first = view.round
    while first > max(1, view.round + 1 - MOST) and view.session.history[first - 1].end > view.clock - SLOTS * slot:
        first -= 1
    return first


class CoresPanel(Panel):
    """Shows what the cores did in the round."""

    NUMBER = 6
    NAME = "Cores"
    HELP = """The slot on the simulated clock. Each line is one core of a client that was awarded a job, with the sign
of the service. The block is local training for it; [b]▒[/b] is the upload of the update. A service waits for its last
client. Where there is room, a chart below has the number of cores in use at each time.

Where work outlasts rounds, it shows the last 30 slots up to the moment that is shown, each core with all of its jobs,
which end with the upload. A job that has no room for the service's name has its sign, and [b]![/b] is one that is lost.

In a walk through events (e), the chart grows with the clock."""

    def compose(self) -> ComposeResult:
        yield CoreLines(id="core-lines")

    @property
    def target(self) -> CoreLines:
        return self.query_one(CoreLines)

    def draw(self, view: Moment) -> None:
        self.target.show(view)
        jobs = counted(sum(offer.core is not None for offer in view.logged.offers), "job")
        self.entitle(f"{jobs} begun, {len(view.at_work)} at work" if view.logged.goes_on else jobs)
