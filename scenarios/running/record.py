"""What a process is doing in a policy's code, for whoever waits for it: a record in memory that both processes see.

A policy that hangs cannot report that, least of all one that holds Python's lock for ever. So what it is asked to do is
written down before, and whoever waits reads it. Writing takes about a microsecond.
"""

import mmap
import struct
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

PATIENCE = 30.0  # seconds after which a policy that has not returned is reported

_SIZE = 1024
_HEAD = struct.Struct("<dI")  # when it began, or 0; the length of the text


@dataclass(frozen=True, slots=True)
class Doing:
    """What a process is doing."""

    what: str  # ``policy 'mine' of service 'mnist', round 3: act()``
    since: float  # when it began, in seconds of ``time.monotonic``, which all processes share

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.since

    @property
    def slow(self) -> str | None:
        """What is reported of it once it has taken ``PATIENCE``; None before."""
        return f"{self.what} has not returned for {PATIENCE:g} s" if self.seconds > PATIENCE else None


class Record:
    """What one process is doing: written there, and read by whoever started it."""

    def __init__(
        self,
        descriptor: int | None = None,  # the other process's ``descriptor``, which this one has inherited
    ) -> None:
        self._file: IO[bytes] | None = None
        self._around: str | None = None
        if descriptor is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close()
            self._file.write(bytes(_SIZE))  # all of it: a full disk must show now, not when memory is written
            self._file.flush()
            descriptor = self._file.fileno()
        self.descriptor = descriptor
        self._memory = mmap.mmap(descriptor, _SIZE)

    def begin(self, what: str) -> None:
        """Write down what begins now."""
        text = what.encode("utf-8", "replace")[: _SIZE - _HEAD.size]
        _HEAD.pack_into(self._memory, 0, 0.0, len(text))
        self._memory[_HEAD.size : _HEAD.size + len(text)] = text
        _HEAD.pack_into(self._memory, 0, time.monotonic(), len(text))

    def end(self) -> None:
        """Write down that it is over."""
        _HEAD.pack_into(self._memory, 0, 0.0, 0)

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """Write down that something begins, and that it is over when the block ends; what is around it begins anew."""
        around, self._around = self._around, what
        self.begin(what)
        try:
            yield
        finally:
            self._around = around
            self.end() if around is None else self.begin(around)

    def read(self) -> Doing | None:
        """Return what the process is doing; None if it is at work on something else, or has just changed."""
        since, length = _HEAD.unpack_from(self._memory, 0)
        text = self._memory[_HEAD.size : _HEAD.size + length]
        if not since or _HEAD.unpack_from(self._memory, 0) != (since, length):
            return None
        return Doing(text.decode("utf-8", "replace"), since)

    def close(self) -> None:
        """Release the memory."""
        self._memory.close()
        if self._file:
            self._file.close()
