"""The runs that the app has open: starts them, opens run directories, and ends every process when the app quits."""

import atexit
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from learning.policy import AS_CONFIGURED
from scenarios.file.policy_choice import PolicyChoice
from scenarios.logs.directory import RunDirectory, RunDirectoryError, State
from scenarios.running.protocol import Start
from tui.watching.feed import RUNNER, RunnerFeed
from tui.watching.session import Phase, Session
from tui.watching.tail import DirectoryFeed


class Feed(Protocol):
    """A source of a session's rounds."""

    def read(self) -> None:
        """Read rounds into the session until there are no more. Runs in its own thread."""

    def send(self, do: str, **content: Any) -> None:
        """Send a command."""

    def close(self) -> None:
        """Stop reading, and end the process if there is one."""


class Runs:
    """The sessions and their feeds.

    Attributes:
        sessions: in the order in which they were opened.
    """

    def __init__(self, work: Callable[[Callable[[], None], str], object], runner: Sequence[str] = RUNNER) -> None:
        """Start without runs.

        Args:
            work: runs a function in a thread, in a group with the given name.
            runner: the command of a runner process.
        """
        self.sessions: list[Session] = []
        self._feeds: dict[Session, Feed] = {}
        self._starts: dict[Session, Start] = {}
        self._work, self._runner = work, runner
        # If the app ends with an exception, its processes must still end.
        atexit.register(self.close)

    def start(self, start: Start, label: str) -> Session:
        """Start a run in its own process; if it is live, return its session, or end it first for a fresh start."""
        # Two processes must not write to one directory.
        live = self._live(start)
        if live is not None:
            if not start.fresh:
                return live
            self.end(live)
        session = Session(label, hurry=start.hurry)
        session.speed = start.speed
        self._starts[session] = _what(start)
        self._add(session, RunnerFeed(session, start, self._runner))
        return session

    def open(self, path: Path) -> Session:
        """Open a run directory; return its session if it is already open and shows what is there."""
        place = path.resolve()
        for session in self.sessions[::-1]:  # the newest first: a run that is resumed gets another session
            if session.directory is not None and session.directory.resolve() == place:
                if not _outdated(session):
                    return session
                self.end(session)
        session = Session(str(path))
        self._add(session, DirectoryFeed(session, path))
        return session

    def fork(self, session: Session, scenario: str, round_: int, *, paused: bool) -> Session:
        """Start a session's run again with its seed and a changed scenario, at full speed up to ``round_``."""
        assert session.directory is not None  # noqa: S101 - only a run that has rounds is forked
        out = session.directory.parent.parent.parent
        policy = None
        if session.policy != AS_CONFIGURED and session.scenario is not None:
            policy = str(PolicyChoice.again(session.policy, session.scenario))
        start = Start(
            scenario, "the fork", str(out), policy, seed=session.seed, fresh=True,
            paused=paused, speed=session.speed, hurry=round_ - 1,
        )  # fmt: skip
        return self._live(start) or self.start(start, f"fork of {session.label}")

    def steerable(self, session: Session) -> bool:
        """Whether a process of this app plays the run, so that it can be paused."""
        return isinstance(self._feeds.get(session), RunnerFeed) and not session.over

    def send(self, session: Session, do: str, **content: Any) -> None:
        """Send a command to the process that plays a run."""
        self._feeds[session].send(do, **content)

    def end(self, session: Session) -> None:
        """End a run's process and close its session."""
        self.sessions.remove(session)
        self._starts.pop(session, None)
        self._feeds.pop(session).close()

    def running(self) -> list[Session]:
        """Return the runs that processes of this app are playing."""
        return [session for session in self.sessions if self.steerable(session)]

    def close(self) -> None:
        """End all processes, all at the same time."""
        feeds, self._feeds = list(self._feeds.values()), {}
        self.sessions.clear()
        if feeds:
            with ThreadPoolExecutor(len(feeds)) as pool:
                list(pool.map(lambda feed: feed.close(), feeds))
        atexit.unregister(self.close)

    def _live(self, start: Start) -> Session | None:
        """Return the session of a run that is being played, if there is one."""
        what = _what(start)
        return next((session for session, other in self._starts.items() if other == what and not session.over), None)

    def _add(self, session: Session, feed: Feed) -> None:
        self.sessions.append(session)
        self._feeds[session] = feed

        def read() -> None:
            try:
                feed.read()
            except Exception as error:  # a defect of ours must not pass unnoticed
                session.move(Phase.FAILED, f"reading the run failed: {error!r}")
                raise

        self._work(read, f"run-{id(session)}")


def _what(start: Start) -> Start:
    """Return a start without the settings that leave the results unchanged."""
    return replace(start, fresh=False, paused=False, speed=None, hurry=0)


def _outdated(session: Session) -> bool:
    """Whether a run that did not end well has been completed since, by another session or another process."""
    if session.directory is None or not session.over or session.phase is Phase.COMPLETE:
        return False
    with suppress(RunDirectoryError):
        return RunDirectory(session.directory).state is State.COMPLETE
    return False
