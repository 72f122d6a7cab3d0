"""The base of what screens watch: it announces changes, from any thread, no more often than screens look."""

import threading
from collections.abc import Callable

from textual.message import Message
from textual.message_pump import MessagePump


class Watched:
    """Something that changes. A screen that watches it gets one message for all changes since it last looked."""

    def __init__(self, news: Callable[[], Message]) -> None:
        self._news = news
        self._watchers: dict[MessagePump, bool] = {}  # whether each has a message that it has not seen
        self._lock = threading.Lock()

    def watch(self, watcher: MessagePump) -> None:
        """Notify a screen of changes from now on."""
        with self._lock:
            self._watchers[watcher] = False

    def unwatch(self, watcher: MessagePump) -> None:
        """Stop notifying a screen."""
        with self._lock:
            self._watchers.pop(watcher, None)

    def seen(self, watcher: MessagePump) -> None:
        """Record that a screen is about to show the present state; the next change notifies it again."""
        with self._lock:
            if watcher in self._watchers:
                self._watchers[watcher] = False

    def changed(self) -> None:
        """Notify all watchers that have seen the last change. From any thread."""
        with self._lock:
            waiting = [watcher for watcher, notified in self._watchers.items() if not notified]
            self._watchers.update(dict.fromkeys(waiting, True))
        for watcher in waiting:
            watcher.post_message(self._news())
