"""All runs that the app has open: it starts them, opens directories, and ends every process when it goes."""

import atexit
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from learning.policy import AS_CONFIGURED
from scenarios.file.policy_choice import PolicyChoice
from scenarios.running.protocol import Start
from tui.watching.feed import RUNNER, RunnerFeed
from tui.watching.session import Phase, Session
from tui.watching.tail import DirectoryFeed


class Feed(Protocol):
    """What fills a session."""

    def read(self) -> None:
        """Fill it until there is no more; in a thread of its own."""

    def send(self, do: str, **content: Any) -> None:
        """Pass a command on."""

    def close(self) -> None:
        """End it."""


class Runs:
    """The sessions and their feeds.

    Attributes:
        sessions: in the order in which they were opened.
    """

    def __init__(self, work: Callable[[Callable[[], None], str], object], runner: Sequence[str] = RUNNER) -> None:
        """Start with none.

        Args:
            work: runs a function in a thread, in a group of that name.
            runner: the command of a runner process.
        """
        self.sessions: list[Session] = []
        self._feeds: dict[Session, Feed] = {}
        self._starts: dict[Session, Start] = {}
        self._work, self._runner = work, runner
        # If the app dies of an exception, its processes still have to go.
        atexit.register(self.close)

    def start(self, start: Start, label: str) -> Session:
        """Start a run in a process of its own, or return the session of one that goes on; a fresh start ends it."""
        # Two processes must not write one directory.
        going_on = self._going_on(start)
        if going_on is not None:
            if not start.fresh:
                return going_on
            self.end(going_on)
        session = Session(label, hurry=start.hurry)
        session.speed = start.speed
        self._starts[session] = _what(start)
        self._add(session, RunnerFeed(session, start, self._runner))
        return session

    def open(self, path: Path) -> Session:
        """Open a run directory; one that is open already is the same session."""
        for session in self.sessions:
            if session.directory is not None and session.directory.resolve() == path.resolve():
                return session
        session = Session(str(path))
        self._add(session, DirectoryFeed(session, path))
        return session

    def fork(self, session: Session, scenario: str, round_: int, *, paused: bool) -> Session:
        """Start a session's run again from its seed with a changed scenario, quickly up to the round that differs."""
        assert session.directory is not None  # noqa: S101 - only a run that has rounds is forked
        out = session.directory.parent.parent.parent
        policy = None
        if session.policy != AS_CONFIGURED and session.scenario is not None:
            policy = str(PolicyChoice.again(session.policy, session.scenario))
        start = Start(
            scenario, "the fork", str(out), policy, seed=session.seed, fresh=True,
            paused=paused, speed=session.speed, hurry=round_ - 1,
        )  # fmt: skip
        return self._going_on(start) or self.start(start, f"fork of {session.label}")

    def steerable(self, session: Session) -> bool:
        """Whether a process of ours plays the run, so that it can be paused."""
        return isinstance(self._feeds.get(session), RunnerFeed) and not session.over

    def send(self, session: Session, do: str, **content: Any) -> None:
        """Pass a command on to the process that plays a run."""
        self._feeds[session].send(do, **content)

    def end(self, session: Session) -> None:
        """End a run's process and forget it."""
        self.sessions.remove(session)
        self._starts.pop(session, None)
        self._feeds.pop(session).close()

    def running(self) -> list[Session]:
        """Return the runs that processes of ours are playing."""
        return [session for session in self.sessions if self.steerable(session)]

    def close(self) -> None:
        """End all processes, at once and for sure."""
        feeds, self._feeds = list(self._feeds.values()), {}
        self.sessions.clear()
        if feeds:
            with ThreadPoolExecutor(len(feeds)) as pool:
                list(pool.map(lambda feed: feed.close(), feeds))
        atexit.unregister(self.close)

    def _going_on(self, start: Start) -> Session | None:
        """Return the session of a run that is being played already, if there is one."""
        what = _what(start)
        return next((session for session, other in self._starts.items() if other == what and not session.over), None)

    def _add(self, session: Session, feed: Feed) -> None:
        self.sessions.append(session)
        self._feeds[session] = feed

        def read() -> None:
            try:
                feed.read()
            except Exception as error:  # a defect of ours must not end in silence
                session.move(Phase.FAILED, f"reading the run failed: {error!r}")
                raise

        self._work(read, f"run-{id(session)}")


def _what(start: Start) -> Start:
    """Return what a start plays, without how."""
    return replace(start, fresh=False, paused=False, speed=None, hurry=0)
