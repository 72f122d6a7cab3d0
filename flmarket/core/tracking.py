"""Progress of long operations: the code that does the work counts, and its caller decides where that is shown."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from threading import Timer
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from flmarket.core.text import duration

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")

INTERVAL = 5.0  # seconds between two lines about the same thing, where lines cannot be redrawn
PATIENCE = 1.0  # seconds before a bar appears: what is done by then needs none


Step = Callable[..., None]  # takes the number done so far and, optionally, a ``text``
Show = Callable[[str, int], AbstractContextManager[Step]]


def _hidden(*_: object) -> AbstractContextManager[Step]:
    return nullcontext(lambda *_: None)


_show: ContextVar[Show] = ContextVar("show", default=_hidden)  # other threads, such as a screen's, show nothing


def counting(what: str, total: int) -> AbstractContextManager[Step]:
    """Return a block in which a number of things is done; the function it yields takes the number done so far."""
    return _show.get()(what, total)


def tracked(items: Sequence[T], what: str) -> Iterator[T]:
    """Yield items, counting them."""
    with counting(what, len(items)) as step:
        for done, item in enumerate(items):
            step(done)
            yield item


def hide() -> None:
    """Show nothing from now on."""
    _show.set(_hidden)


@contextmanager
def shown(*, live: bool) -> Iterator[None]:
    """Show on standard error what is counted in the block: live, as bars, or in a line every few seconds."""
    bars = _Bars()
    before = _show.set(bars if live else _lines)
    try:
        yield
    finally:
        bars.end()
        _show.reset(before)


@contextmanager
def _lines(what: str, total: int) -> Iterator[Step]:
    from flmarket.core.rich_console import SafeConsole

    shown_at, first = monotonic(), (0, 0.0)

    def step(done: int, text: str = "") -> None:
        nonlocal shown_at, first
        now = monotonic()
        first = first if first[1] else (done, now)
        if now - shown_at < INTERVAL:
            return
        shown_at = now
        parts = [f"{done} of {total}", text]
        if done > first[0]:
            parts.append(f"{duration((now - first[1]) / (done - first[0]) * (total - done))} left")
        line = f"{what}: {', '.join(filter(None, parts))}"
        SafeConsole(stderr=True).print(line, highlight=False, soft_wrap=True)

    yield step


class _Bars:
    """A bar for each thing that is counted, one below the other; they vanish when all has been, or has failed."""

    def __init__(self) -> None:
        self._bars: Progress | None = None
        self._timer = Timer(0, lambda: None)

    @contextmanager
    def __call__(self, what: str, total: int) -> Iterator[Step]:
        if self._bars is None:
            bars = _progress()
            self._timer = Timer(PATIENCE, bars.start)
            self._timer.start()
            self._bars = bars
        bars = self._bars
        task = bars.add_task(what, total=total, text="")
        try:
            yield lambda done, text="": bars.update(task, completed=done, text=text)
        finally:
            bars.remove_task(task)
            if not bars.tasks:
                self.end()

    def end(self) -> None:
        self._timer.cancel()
        if self._bars is not None:
            self._timer.join()
            self._bars.stop()
            self._bars = None


def _progress() -> "Progress":
    from rich import progress
    from rich.table import Column
    from rich.text import Text

    from flmarket.core.rich_console import SafeConsole

    class Label(progress.TextColumn):
        def render(self, task: progress.Task) -> Text:
            text = super().render(task)
            text.no_wrap = True  # unlike its column, which else could not give way
            return text

    return progress.Progress(
        progress.SpinnerColumn(),
        Label("{task.description}", markup=False, table_column=Column()),
        progress.BarColumn(bar_width=16),
        progress.MofNCompleteColumn(table_column=Column(no_wrap=True)),
        progress.TimeRemainingColumn(table_column=Column(no_wrap=True)),
        Label("{task.fields[text]}", markup=False, table_column=Column(ratio=1)),  # gives way first
        console=SafeConsole(stderr=True),
        transient=True,
        expand=True,
        redirect_stdout=sys.stdout.isatty(),  # results that go into a file stay there
    )
