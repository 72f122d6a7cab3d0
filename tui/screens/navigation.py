"""Leading from one screen to another: a screen asks the app, and needs to know none of the others."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tui.settings import Settings

if TYPE_CHECKING:
    from scenarios.running.steering import Start
    from tui.state.runs import LiveBatch, Runs
    from tui.state.watched_run import Session


class Navigator(Protocol):
    """The app, as screens see it. Each method shows a screen on top of the one that asks, unless it says otherwise."""

    out: Path  # folder for run directories
    batch: Path  # folder of the batch screen: the one given at the start, else that for run directories
    folder: Path  # folder for scenario files
    sought: Sequence[str]  # the words of the last search in a list
    settings: Settings  # what is remembered between starts

    @property
    def runs(self) -> "Runs":
        """The open runs, with the processes that play them. The first access takes imports."""

    @property
    def sessions(self) -> "Sequence[Session]":
        """The open runs, in the order in which they were opened."""

    @property
    def live_batch(self) -> "LiveBatch | None":
        """The newest batch that this app plays, or has played."""

    def show_market(self, session: "Session") -> None:
        """Watch one run."""

    def show_fork(self, session: "Session", selected: tuple[int, int | None]) -> None:
        """Compare a fork with its original, below which it is watched, with the service and client chosen there."""

    def show_comparison(self, sessions: "Sequence[Session]") -> None:
        """Compare two or more runs."""

    def show_batch(self, folder: Path) -> None:
        """Show all runs of a folder, and follow them."""

    def show_trainings(self, logs: Sequence[Path]) -> None:
        """Show trainings by their logs, and follow them."""

    def edit_outside(self, path: Path) -> bool:
        """Edit a file in the user's own editor; return whether there was one to do it in."""

    def show_form(self, text: str, file: str, own: Path | None) -> None:
        """Edit a scenario in a form; see ``ConfigureScreen``."""

    def play(self, starts: "Sequence[tuple[Start, str]]") -> None:
        """Start runs, each with a label, and show them."""

    def ask_and_run(self, text: str, file: str) -> None:
        """Ask how to run a scenario's text, which problems call ``file``, then show its runs, several in comparison."""
