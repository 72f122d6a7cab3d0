"""A moment of a run, as the market screen shows it: one round, or a point in a walk through its events.

The playhead moves through the run.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from des.clock import Microseconds
from des.log_records import Kind, MarketEvent, OfferReport
from des.observation import Status
from scenarios.file.schema import Scenario
from scenarios.logs.reading import LoggedRound
from scenarios.logs.run_state import RunState
from tui.state.bid_verdicts import BidVerdict, RoundBook
from tui.state.history import History
from tui.state.watched_run import Session

MARKS = {
    Kind.AWARD: "◇",
    Kind.TRAIN_START: "▶",
    Kind.TRAIN_END: "■",
    Kind.UPLOAD: "↑",
    Kind.PAY: BidVerdict.SERVED.value,
}
"""Signs in a walk: how far a client has come for a service."""

WALK_WORDS = {
    "◇": "awarded",
    "▶": "training",
    "■": "trained",
    "↑": "uploaded",
    "●": "paid",
    "×": "outbid",
    "?": "wanted",
    "·": "nothing yet",
}
"""Signs in a walk, in words."""

REFUSED = {it.value for it in (BidVerdict.OUTBID, BidVerdict.DROPPED, BidVerdict.DECLINED)}

WANTED = "?"  # sign of a client that a service has made an offer to, before the cores are allocated


@dataclass(frozen=True)
class Moment:
    """A moment of a run. Panels show it, and keep only what is selected in them."""

    session: Session  # the run
    round: int  # the round that is shown; 0 before the first
    event: int | None = None  # how many of its events have happened in a walk, or None for the whole round
    service: int = 0  # the service that is chosen, by place
    client: int | None = None  # the client that is chosen, by place; None as long as none is

    @property
    def scenario(self) -> Scenario | None:
        """The run's scenario; None until it is known."""
        return self.session.scenario

    @property
    def begun(self) -> bool:
        """Whether there is a round; panels show nothing before the first one."""
        return 0 < self.round <= len(self.session.history)

    @property
    def ended(self) -> bool:
        """Whether the last round of a complete run is shown, after which no service trains."""
        over = self.session.state is RunState.COMPLETE
        return over and self.event is None and self.round == len(self.session.history)

    @cached_property
    def logged(self) -> LoggedRound:
        return self.session.history[self.round]

    @property
    def split(self) -> bool:
        """Whether accuracies are measured on validation images; the one on test images is logged as well."""
        return self.scenario is not None and self.scenario.split

    @cached_property
    def book(self) -> RoundBook:
        return self.session.book(self.logged)

    @property
    def events(self) -> tuple[MarketEvent, ...]:
        return self.logged.events if self.begun else ()

    @property
    def latest(self) -> MarketEvent | None:
        return None if not self.event else self.events[self.event - 1]

    @property
    def clock(self) -> Microseconds:
        if self.latest is not None:
            return self.latest.sim_time
        if self.event == 0 and self.events:
            return self.events[0].sim_time
        # Work that outlasts rounds goes on after the last one.
        return max((self.logged.end, *(it.sim_time for it in self.events[-1:]))) if self.begun else 0

    @cached_property
    def carried(self) -> tuple[OfferReport, ...]:
        """The offers of earlier rounds whose clients are still at work as the round begins."""
        return self.session.history.at_work(self.round - 1)

    @cached_property
    def at_work(self) -> list[OfferReport]:
        """The offers whose clients are at work."""
        jobs = (*self.carried, *self.logged.offers)
        return [job for job in jobs if job.end is not None and (job.start or 0) <= self.clock < job.end]

    def cores_in_use(self, client: int) -> int:
        """Return how many of a client's cores are at work where work outlasts rounds; else, how many it gave away."""
        if self.logged.goes_on:
            return sum(job.client == client for job in self.at_work)
        return len(self.book.holders.get(client, ()))

    @cached_property
    def reached(self) -> dict[tuple[str, int], Kind]:
        return {
            (event.service, event.client): event.event
            for event in self.events[: self.event]
            if event.service is not None and event.client is not None
        }

    @cached_property
    def happened(self) -> dict[str | None, list[MarketEvent]]:
        """In a walk: the events so far, by their services."""
        found: dict[str | None, list[MarketEvent]] = {}
        for event in self.events[: self.event]:
            found.setdefault(event.service, []).append(event)
        return found

    @cached_property
    def decided(self) -> set[str]:
        return {event.service or "" for event in self.events[: self.event] if event.event is Kind.DECISION}

    def absence(self, service: int) -> str:
        """Return why a service, by its place, takes no part in the round; empty if it does."""
        row = self.logged.services[service]
        if row.status is Status.WAITING:
            return f"{row.service} has not arrived"
        if row.status is not Status.LEFT:
            return ""
        left, why = self.session.history.departure_of(service)
        reason = "having reached its target" if why is Status.REACHED else "as its patience was over"
        return f"{row.service} left in round {left}, {reason}"

    def offered(self, service: int) -> bool:
        """Whether it is known what a service, by its place, offers: from its decision on."""
        return self.event is None or self.logged.services[service].service in self.decided

    @cached_property
    def allocated(self) -> bool:
        """In a walk: whether the cores have been allocated; a wanted client without one was then outbid."""
        walked = self.events[: self.event]
        awards = sum(event.event is Kind.AWARD for event in self.events)
        decisions = sum(event.event is Kind.DECISION for event in self.events)
        happened = [event.event for event in walked]
        return happened.count(Kind.AWARD) == awards and happened.count(Kind.DECISION) == decisions

    @cached_property
    def asked(self) -> int:
        """The client of questions: the chosen one, else one that the chosen service has lost, else its book's first."""
        if self.client is not None:
            return min(self.client, self.book.clients - 1)
        service, client = self.refusal() or (None, 0)
        by = "who" if self.event is not None else "result"
        return client if service == self.service else self.book.clients_of(self.service, by)[0]

    def refusal(self, client: int | None = None) -> tuple[int, int] | None:
        """Return service and client of an offer known to be refused, of the chosen service if it has one."""
        names = [row.service for row in self.logged.services]
        offers = [
            (names.index(offer.service), offer.client) for offer in self.logged.offers if client in {None, offer.client}
        ]
        refused = [offer for offer in offers if self.mark(*offer) in REFUSED]
        return min(refused, key=lambda offer: offer[0] != self.service, default=None)

    def mark(self, service: int, client: int) -> str:
        """Return the sign for a client and a service at this moment."""
        verdict = self.book.verdict(service, client)
        if self.event is None or verdict in {BidVerdict.LEFT, BidVerdict.OFFLINE}:
            return verdict.value
        name = self.logged.services[service].service
        if (name, client) in self.reached:
            return MARKS.get(self.reached[name, client], "◇")
        if verdict is BidVerdict.AT_WORK:
            return BidVerdict.AT_WORK.value
        if self.book.offer(service, client) is None or not self.offered(service):
            return BidVerdict.UNWANTED.value
        decided = self.allocated and verdict in {BidVerdict.OUTBID, BidVerdict.DECLINED}
        return verdict.value if decided else WANTED


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
        number = after(rounds, self.round) if direction > 0 else before(rounds, self.round)
        if number is not None:
            self.seek(history, number)
        return number is not None

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


def after(rounds: Sequence[int], number: int) -> int | None:
    """Return the first of the ordered rounds after ``number``, if any."""
    place = bisect_right(rounds, number)
    return rounds[place] if place < len(rounds) else None


def before(rounds: Sequence[int], number: int) -> int | None:
    """Return the last of the ordered rounds before ``number``, if any."""
    place = bisect_left(rounds, number)
    return rounds[place - 1] if place else None
