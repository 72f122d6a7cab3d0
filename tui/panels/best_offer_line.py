"""Below a service's order book: the best set that it could have bought. Worked out off the screen, once for a round."""

from functools import partial

from rich.text import Text
from textual.widgets import Static

from flmarket.analysis.what_if.reasons import cash
from tui.state.bid_verdicts import Book
from tui.state.moment import Moment
from tui.state.watched_run import Session

KEPT = 256  # rounds and services whose lines are kept

Key = tuple[Session, int, int]  # A run, a round and a service


class BestLine(Static):
    """One line, empty until it is known. While one is worked out, only the newest that is wanted waits."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__("", id=id)
        self._known: dict[Key, str] = {}
        self._wanted: tuple[Key, Book] | None = None
        self._working = False

    def show(self, view: Moment, service: int | None) -> None:
        """Show what a service could have had in the round of a view; nothing in a walk, which must not give it away."""
        book = view.book
        if service is None or not book.has_best or view.event is not None:
            self._wanted = None
            self.set_class(False, "-known")
            return
        self.set_class(True, "-known")
        self._wanted = (view.session, view.round, service), book
        self._draw()

    def _draw(self) -> None:
        if self._wanted is None:
            return
        key, book = self._wanted
        self.update(Text(self._known.get(key, "")), layout=False)
        if key not in self._known and not self._working:
            self._working = True
            work = partial(self._work_out, key, book)
            self.run_worker(work, thread=True, group="best", exit_on_error=False)

    def _work_out(self, key: Key, book: Book) -> None:
        words = ""
        try:
            words = best_words(book, key[2])
        finally:  # a line that cannot be worked out must not keep the next ones waiting
            self.app.call_from_thread(self._found, key, words)

    def _found(self, key: Key, words: str) -> None:
        self._working = False
        self._known[key] = words
        while len(self._known) > KEPT:
            del self._known[next(iter(self._known))]
        if self.is_mounted:
            self._draw()


def best_words(book: Book, service: int) -> str:
    """Return what a service could have had in a round; what matters most comes first, as lines are cut off."""
    best = book.best(service)
    if best is None:
        return ""
    more = best.quality - book.quality(service)
    clients = ", ".join(map(str, best.clients.tolist())) or "none"
    return f"best within the budget: DQI {best.quality:.4f} ({more:+.4f}) for {cash(best.cost)}, clients {clients}"
