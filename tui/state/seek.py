"""The place in a run that a screen shows: the round, how far into its events, and whether it follows the run."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from des.log_records import Kind, MarketEvent
from tui.state.history import History, after, before

SPEEDS: tuple[float | None, ...] = (0.25, 0.5, 1, 2, 5, 10, None)  # rounds per second; None is full speed

TO_WATCH = 5.0  # rounds per second of a run that is started to be watched, if the user has chosen no speed

SLOW = 2.0  # rounds per second up to which a round that comes is shown part by part

LONGEST = 60.0  # seconds that such a run takes at most, if its rounds are played as fast as that


@dataclass
class Playhead:
    """A place in a history that may still grow."""

    round: int = 0  # the round that is shown; 0 while there is none
    event: int | None = None  # how many of its events are shown, or None for the whole round
    following: bool = True  # whether new rounds are shown as they come
    awaited: int = 0  # the round that is shown as soon as it has been read; 0 for none

    def grown(self, history: History) -> bool:
        """Move to the newest round if following, or to the awaited one; return whether a new round is followed."""
        if 0 < self.awaited <= len(history):
            self.seek(history, self.awaited)
        if not (self.following or not self.round) or self.round == len(history):
            return False
        self.round, self.event = len(history), None
        return True

    def seek(self, history: History, number: int) -> None:
        """Go to a round, or to the nearest one that exists."""
        self.event = None
        self.round = max(min(1, len(history)), min(len(history), number))
        self.following, self.awaited = False, 0

    def follow(self, history: History) -> None:
        """Go to the newest round and stay there."""
        self.event, self.following, self.awaited, self.round = None, True, 0, len(history)

    def jump(self, history: History, what: str, direction: int) -> bool:
        """Go to the next or previous exit or conflict; return whether there is one."""
        rounds = history.exits if what == "exit" else history.conflicts
        found = after(rounds, self.round) if direction > 0 else before(rounds, self.round)
        if found is not None:
            self.seek(history, found)
        return found is not None

    def walk(self, history: History, direction: int) -> None:
        """Go forward or back by one event; beyond either end the whole round is shown again."""
        if not self.round:
            return
        self.following = False
        last = len(history[self.round].events)
        here = (0 if direction > 0 else last) if self.event is None else self.event
        there = here + direction
        self.event = None if there > last or there < 0 else there


def parts(events: Sequence[MarketEvent]) -> list[int]:
    """Return after how many events a round is shown that unfolds: bids, offers, awards, trainings."""
    ends = {event.event: number for number, event in enumerate(events, 1)}
    return [ends[kind] for kind in (Kind.BID, Kind.DECISION, Kind.AWARD, Kind.TRAIN_END) if kind in ends]


def to_watch(rounds: int) -> float:
    """Return the speed of a run of so many rounds that is started to be watched."""
    return max(TO_WATCH, rounds / LONGEST)


def faster(speed: float | None, direction: int) -> float | None:
    """Return the next of ``SPEEDS`` above or below a speed, which need not be one of them; itself at either end."""
    here, *values = (inf if value is None else value for value in (speed, *SPEEDS))
    found = [other for other, value in zip(SPEEDS, values, strict=True) if (value - here) * direction > 0]
    return found[0 if direction > 0 else -1] if found else speed
