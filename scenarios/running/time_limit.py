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

from flmarket.core.plugin_errors import called, is_own
from learning.policy import Policy, learns
from scenarios.build import CreatePolicy, build_policy
from scenarios.file.schema import Scenario, Service

PATIENCE = 30.0  # seconds after which plug-in code that has not returned is reported
_TICK = 1.0  # seconds between two looks at where the main thread is


class TimeLimit:
    """A limit for each call of a policy. The process that exceeds it ends; ``process`` says where it stood."""

    def __init__(self, seconds: float | None, report: int) -> None:
        """Write where the process stands to the descriptor ``report``; without ``seconds``, nothing is limited."""
        self._seconds, self._report = seconds, report

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

    @property
    def create(self) -> CreatePolicy:
        """Return what creates policies whose calls are limited."""
        return build_policy if self._seconds is None else self._create

    def _create(self, scenario: Scenario, service: Service) -> Policy:
        with self():
            policy = build_policy(scenario, service)
        for name in ("act", "state", "restore", *(["learn"] if learns(policy) else [])):
            setattr(policy, name, self._limited(getattr(policy, name)))
        return policy

    def _limited(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(*given: Any) -> Any:
            with self():
                return method(*given)

        return call


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
