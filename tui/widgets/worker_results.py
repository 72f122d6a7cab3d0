"""Results of worker threads, of which only the latest one's counts."""

from collections.abc import Callable
from typing import Any

from textual.app import App
from textual.worker import get_current_worker


def hand_over(app: App[Any], take: Callable[..., None], *found: object) -> None:
    """Give what a worker thread has found to its screen, unless a newer one of its exclusive group has begun.

    A thread that is cancelled runs on, and one that was begun earlier may end later.
    """
    worker = get_current_worker()

    def unless_outdated() -> None:  # asked in the app's own thread, in which newer ones begin
        if not worker.is_cancelled:
            take(*found)

    app.call_from_thread(unless_outdated)
