"""The leagues of a folder's scenarios: each policy's mean on one axis, with its interval and the runs behind it."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.cells import cell_len
from rich.text import Text
from textual.geometry import Size
from textual.widget import Widget

from tui.state.batch_folder import Place
from tui.style.colors import series_color, tint
from tui.style.text_layout import fit
from tui.widgets.plot import ACROSS, axis

INDENT = "  "  # of the names of policies
LEAST = 24  # cells of the axis, for which there is always room, of a terminal that is wide enough
NUMBERS = 18  # cells between the name and the axis
NARROWEST = 1.0  # percentage points that an axis spans at least
WIDE = 84  # cells from which on the interval stands in numbers, too


class LeagueChart(Widget):
    """A line for each policy below its scenario's; where there is no room for all, the chosen scenario comes first."""

    DEFAULT_CSS = """
    LeagueChart { border: round $panel-lighten-2; border-title-color: $text-muted; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.border_title = "League · final accuracy %, mean and 95 % interval over seeds"
        self._leagues: Mapping[Path, Sequence[Place]] = {}
        self._chosen = Path()

    def show(self, leagues: Mapping[Path, Sequence[Place]], chosen: Path) -> None:
        """Show the policies of all scenarios, by their folders."""
        if (leagues, chosen) != (self._leagues, self._chosen):
            before, self._leagues, self._chosen = self._count, leagues, chosen
            self.refresh(layout=self._count != before)

    @property
    def _count(self) -> int:
        return sum(1 + len(places) for places in self._leagues.values())

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return self._count

    def render(self) -> Text:
        folders = list(self._leagues)
        if self._count > self.size.height:
            folders.sort(key=lambda folder: folder != self._chosen)
        names = [INDENT + place.group.first.policy for places in self._leagues.values() for place in places]
        names += map(_scenario, self._leagues.values())
        width = max(8, min(max(map(cell_len, names), default=0), self.size.width - LEAST - NUMBERS))
        lines = [line for folder in folders for line in self._lines(self._leagues[folder], width)]
        return Text("\n").join(lines[: self.size.height])

    def _lines(self, places: Sequence[Place], width: int) -> Iterator[Text]:
        """Yield the lines of a scenario, whose names have so many cells: its own with the axis, then its policies."""
        faint = str(tint(self.app, "foreground", dim=True))
        every = (place.interval for several in self._leagues.values() for place in several)
        wide = self.size.width >= WIDE and any(interval and interval.known for interval in every)
        names = sorted(place.group.first.policy for place in places)
        numbers = f"  {'seeds':>7}   mean  " + (f"{'interval':14}  " if wide else "")
        cells = max(1, self.size.width - width - len(numbers))
        values = [value for place in places for value in _values(place)]
        low, high = min(values, default=0.0), max(values, default=100.0)
        around = max(0.0, (NARROWEST - high + low) / 2)
        scale = axis(low - around, high + around, cells, ACROSS)
        labels = [" "] * cells
        for cell, label in scale.ticks:
            start = max(0, min(cell - len(label) // 2, cells - len(label)))
            labels[start : start + len(label)] = label
        yield Text.assemble((fit(_scenario(places), width), "bold"), (f"{numbers}{''.join(labels)}", faint))
        for place in places:
            group, found = place.group, place.interval
            color = series_color(names.index(group.first.policy))
            line = Text.assemble(fit(INDENT + group.first.policy, width))
            line.append(f"  {f'{len(place.accuracies)} of {len(group.runs)}':>7}  ", faint)
            if found is None:
                done, rounds = group.rounds
                yield line.append(f"{'':5}  {done:,}{'' if rounds is None else f' of {rounds:,}'} rounds played", faint)
                continue
            line.append(f"{found.estimate:5.1f}  ", "bold")
            if wide:
                line.append(f"{found.text('.1f').partition(' ')[2]:14}  ", faint)
            marks = [(" ", "")] * cells
            for cell, _ in scale.ticks:
                marks[cell] = "┊", faint
            if found.known:
                for cell in range(scale.cell(found.low, cells), scale.cell(found.high, cells) + 1):
                    marks[cell] = "━", color
            for cell in {scale.cell(value, cells) for value in place.accuracies}:
                marks[cell] = "┿" if marks[cell][0] == "━" else "∙", color
            marks[scale.cell(found.estimate, cells)] = "●", f"bold {color}"
            for mark, style in marks:
                line.append(mark, style)
            yield line


def _scenario(places: Sequence[Place]) -> str:
    return places[0].group.runs[0].title


def _values(place: Place) -> list[float]:
    """Return what the axis must show of a policy."""
    ends = [place.interval.low, place.interval.high] if place.interval and place.interval.known else []
    return [*place.accuracies, *ends]
