"""The state of a run: one word, on whatever screen and in whatever list."""

from enum import StrEnum


class RunState(StrEnum):
    """The state of a run, or of a training, in the order in which states ask for attention."""

    FAILED = "failed"  # meta.json says why
    UNREADABLE = "unreadable"  # its files cannot be used: they cannot be read, or are not what was written
    GONE = "gone"  # its directory has been removed since it was seen
    INTERRUPTED = "interrupted"  # it has begun and not ended, and no process plays it
    # It has begun and not ended; more is not known: it has stopped just now, or is played where files have no locks.
    INCOMPLETE = "incomplete"
    PAUSED = "paused"  # by the user who watches it
    STARTING = "starting"  # its process is there, its first round is not next yet
    READING = "reading"  # a screen reads its files, and does not know yet which of the others it is
    RUNNING = "running"  # a process plays it, whichever that is
    WAITING = "waiting"  # it has not begun: nothing is in its directory
    COMPLETE = "complete"
