"""Plug-in code that does not return: reported after a while, and ended by ``--decision-timeout``.

The limit is faulthandler's: its watchdog is no thread of Python's, so it ends code that never lets go of the
interpreter's lock, too. It writes down where each thread stands, and ends the process.
"""

import faulthandler
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from des.observation import Observation
from flmarket.core.plugin_errors import called, is_own
from learning.policy import Policy, learns
from scenarios.build import build_policy
from scenarios.file.schema import Scenario, Service

PATIENCE = 30.0  # seconds after which plug-in code that has not returned is reported
_TICK = 1.0  # seconds between two looks at where the main thread is


class TimeLimit:
    """A limit for each call of a policy. The process that exceeds it ends; ``process`` says where it stood."""

    def __init__(
        self,
        seconds: float | None,  # None limits nothing
        report: int,  # the descriptor to which a process that is ended writes where it stands
        note: Callable[[str], None],  # called with what is about to be called, and with "" when it has returned
    ) -> None:
        self._seconds, self._report, self._note = seconds, report, note

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Limit what the block does."""
        if self._seconds is None:
            yield
            return
        faulthandler.dump_traceback_later(self._seconds, exit=True, file=self._report)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()

    def create(self, scenario: Scenario, service: Service) -> Policy:
        """Create a policy whose calls are limited and, if it is a plug-in's, noted: it may end the process."""
        with self._noted(f"service {service.name}, policy {service.policy}"):
            policy = build_policy(scenario, service)
        if self._seconds is not None or not type(policy).__module__.startswith("learning."):
            for name in ("act", "state", "restore", *(["learn"] if learns(policy) else [])):
                object.__setattr__(policy, name, self._limited(getattr(policy, name), service.name))
        return policy

    def _limited(self, method: Callable[..., Any], service: str) -> Callable[..., Any]:
        @wraps(method)
        def call(*given: Any) -> Any:
            when = f", round {given[0].round}" if given and isinstance(given[0], Observation) else ""
            with self._noted(f"service {service}{when}"):
                return method(*given)

        return call

    @contextmanager
    def _noted(self, what: str) -> Iterator[None]:
        self._note(what)
        try:
            with self():
                yield
        finally:
            self._note("")


def report_slow(report: Callable[[str], None]) -> None:
    """Report plug-in code in the main thread that has not returned for ``PATIENCE`` seconds, once each time; for ever.

    It runs in a thread of its own, so it sees nothing of code that never lets go of the interpreter's lock.
    """
    entered, since, reported = None, 0.0, False
    main = threading.main_thread().ident or 0
    while True:
        time.sleep(_TICK)
        stack = list(traceback.walk_stack(sys._current_frames().get(main)))
        own = [(frame, line) for frame, line in stack if is_own(frame.f_code.co_filename)]
        if not own or own[-1][0] is not entered:
            entered, since, reported = own[-1][0] if own else None, time.monotonic(), False
        elif not reported and time.monotonic() - since > PATIENCE:
            reported = True
            frame, line = own[0]
            where = f"{frame.f_code.co_filename}:{line}, in {called(frame)},"
            report(f"{where} has not returned for {PATIENCE:g} s")
