"""The platform: it takes a round's offers, step by step, clears them and makes awards, which become jobs.

The prices, lengths and outcomes of jobs are certain from the awards on.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from math import inf
from operator import attrgetter
from typing import Any

import numpy as np

from des.allocation import NO_CORE, free_core, tie_order_of
from des.clients.population import Population, Qualities
from des.clock import NEVER, Microseconds, Travel, WorkTimes, departure, stretched
from des.contracts import with_contracts
from des.ledger import Ledger
from des.log_records import Kind, Outcome
from des.mechanism import (
    MECHANISMS,
    Book,
    Clearing,
    ClearingError,
    Fates,
    Mechanism,
    RoundView,
    clearing_of,
    learn,
    menu_of,
    record_of,
    settlements_of,
)
from des.money import MICRO, Micro, to_micro
from des.observation import Offer
from des.offer_checks import CheckedOffer, check_offer
from des.response import Terms
from des.round_state import Round, StandingOffers
from des.schedule import Rules
from des.service import ServiceSpec
from des.timeline import Durations, Job
from fl.arithmetic.draws import draw_key, normals
from fl.arrays import BoolArray, IntArray, read_only
from fl.training.jobs import TrainingJob
from flmarket.core.errors import InputError
from flmarket.core.plugin_errors import method, plugin_state

HIRED = -1  # in the place of an offer where a client serves by a contract


class Platform:
    """Takes offers, clears each round by the market's mechanism, and works out how long each job takes."""

    def __init__(self, population: Population, timeline: Durations, mechanism: Mechanism, seed: int) -> None:
        self._population = population
        self.mechanism = mechanism  # what clears the rounds
        self._rules: Rules | None = None
        speeds, self._speed_of = np.unique(population.speed, return_inverse=True)
        self._times = WorkTimes((timeline.seconds_per_sample, speed) for speed in speeds.tolist())
        self._download = Travel(timeline.download, population.download)
        self._upload = Travel(timeline.upload, population.upload)
        self._patience = timeline.patience
        self._slot = to_micro(timeline.period or 0)
        self._jitter, self._jitters = timeline.jitter, draw_key(seed, "jitter")
        self._ties = draw_key(seed, "ties")
        self._departing = bool(np.count_nonzero(population.departure_rate))  # whether clients leave

    def play_by(self, rules: Rules | None) -> None:
        """Clear by another mechanism from here on, which begins fresh; None and the rules in force change nothing."""
        if rules is None or rules == self._rules:
            return
        try:
            self._rules, self.mechanism = rules, MECHANISMS.create(rules[0], **rules[1])
        except InputError as error:
            raise ClearingError(str(error)) from error

    def state(self) -> dict[str, Any]:
        """Return what the mechanism has noted of the rounds so far, and what was counted for it."""
        noted = plugin_state(self.mechanism, "mechanism", ClearingError)
        if not self.mechanism.counts_deliveries:
            return noted
        return {"noted": noted, "record": None if self.mechanism.record is None else self.mechanism.record.tolist()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a ``state``. Errors as there."""
        if self.mechanism.counts_deliveries:
            state, record = state["noted"], state["record"]
            self.mechanism.record = None if record is None else read_only(np.array(record, dtype=np.int64))
        self.mechanism.restore(state)

    def take(
        self,
        current: Round,  # nothing in it has changed if an offer is refused
        offers: Mapping[str, Offer],  # one from each service that may offer, by name
        ledger: Ledger,
    ) -> None:
        """Check the offers of one step, hold their money, and set who may offer next."""
        over_budget = self.mechanism.keeps_budgets
        turn = current.turns[current.step] if current.turns else None
        left = {m: ledger.accounts[current.services[m].name].free for m in current.offering}
        step = {
            m: check_offer(
                offers[current.services[m].name],
                policy=current.services[m].policy,
                service=current.services[m].name,
                round_=current.number,
                bids=current.asks.least[m],
                budget=left[m],
                offline=current.conditions.offline,
                unwilling=current.unwilling(m),
                turn=turn,
                over_budget=over_budget,
            )
            for m in current.offering
        }
        for m, offer in step.items():
            name = current.services[m].name
            ledger.hold(name, left[m] if over_budget else offer.total)
            current.journal.record(Kind.DECISION, name, amount=offer.total)
        current.step += 1
        if current.turns:
            self._end_turn(current, step, ledger)
        else:
            for m, offer in step.items():
                current.offers[m] = current.offers[m].and_then(offer) if m in current.offers else offer
            current.offering = self._release(current, ledger) if current.step < self.mechanism.steps else ()

    def _end_turn(self, current: Round, step: Mapping[int, CheckedOffer], ledger: Ledger) -> None:
        """Clear the client whose turn it was, and release what services do not need for those that they have won.

        That a client's clearing follows from the offers to it alone is what ``Mechanism.by_client`` says.
        """
        for m, offer in step.items():
            current.said.setdefault(m, []).append(offer)
        if any(len(offer.clients) for offer in step.values()):
            book = self.book(current, step)
            clearing = self._clearing(current, book)
            won = clearing.core != NO_CORE
            for m, price in zip(book.services[won].tolist(), clearing.price[won].tolist(), strict=True):
                current.spent[m] = current.spent.get(m, 0) + price
        for m in step:
            name = current.services[m].name
            needed = current.due.get(m, 0) + current.spent.get(m, 0)
            ledger.release(name, ledger.accounts[name].held - needed)
        if current.step == len(current.turns):
            current.offers = {m: first.and_then(*later) for m, (first, *later) in current.said.items()}
            current.offering = ()

    def _release(self, current: Round, ledger: Ledger) -> tuple[int, ...]:
        """Release the money of offers that have been refused in the last step; return whose."""
        again = []
        for m, places in self._refusals(current).items():
            offer = current.offers[m]
            lost = frozenset(offer.clients[places].tolist())
            if new := lost - current.lost.get(m, frozenset()):
                name = current.services[m].name
                payments = dict(zip(offer.clients.tolist(), offer.payments.tolist(), strict=True))
                # Where the mechanism keeps budgets, what is held is the budget, not the sum of the offers.
                everything = self.mechanism.keeps_budgets
                held = ledger.accounts[name].held - current.due.get(m, 0)
                ledger.release(name, held if everything else sum(payments[c] for c in new))
                again.append(m)
            current.lost[m] = lost
        return tuple(again)

    def _refusals(self, current: Round) -> dict[int, IntArray]:
        """Return the offers that would be refused if the round were cleared now, as their places, by service."""
        core = self._clearing(current, self.book(current)).core
        ends = np.cumsum([len(offer.clients) for offer in current.offers.values()])
        parts = np.split(core == NO_CORE, ends[:-1])
        return {m: part.nonzero()[0] for m, part in zip(current.offers, parts, strict=True)}

    def book(self, current: Round, some: Mapping[int, CheckedOffer] | None = None) -> Book:
        """Return the book of a round's offers, or of some of them."""
        of = current.offers if some is None else some
        offers = of.values()
        services = np.repeat(list(of), [len(offer.clients) for offer in offers])
        clients = np.concatenate([offer.clients for offer in offers])
        payments = np.concatenate([offer.payments for offer in offers])
        places, world = (services, clients), current.world
        # One number for each service, not a permutation: a service added at the end does not change the order.
        tie_order = partial(tie_order_of, self._ties, current.number, len(current.services))
        due, specs = current.due, current.services
        funds = [spec.budget - due.get(m, 0) if m in of else 0 for m, spec in enumerate(specs)]
        budgets = np.array(funds, dtype=np.int64)
        arrays = services, clients, payments, world.bid[places], current.asks.least[places], budgets
        for array in arrays:
            array.setflags(write=False)  # cheaper than the views that a book takes of others
        view = partial(self._seen(current), current.left, services, record_of(self.mechanism, world.bid))
        now = current.conditions
        return Book(*arrays, now.cores, tie_order, view, cores_of=now.cores_of)

    def award(self, current: Round, ledger: Ledger) -> None:
        """Let the mechanism decide who is served at what price, and turn what clients answer into the round's jobs."""
        book = current.book = self.book(current)
        clearing = current.clearing = self._clearing(current, book)
        won = (clearing.core != NO_CORE).nonzero()[0]
        columns = book.services, book.clients, book.payments, clearing.core, clearing.price
        owed = [(it.service, it.client, it.price, it.core, it.price, HIRED) for it in current.contracts]
        services, clients, payments, cores, prices, at = with_contracts((*(of[won] for of in columns), won), owed)
        places = services, clients
        epochs = np.array([spec.local_epochs for spec in current.services])[services]
        world = current.world
        held = world.held.some(*places).data_size
        samples = held if world.held.at is world.at else world.some(*places).data_size
        names = [spec.name for spec in current.services]
        if self.mechanism.platform_budget:
            needs = np.bincount(services, prices, len(names)).tolist()
            ledger.pool({names[m]: int(needs[m]) for m in current.offers})
        terms, answers = self._population.spec.response, None
        if terms is not None:
            menu = menu_of(self.mechanism, book, clearing, current.number)
            answers = self._population.answers(terms, world.held, places, prices, menu)
            prices, samples = answers.payment, terms.images(samples, answers.promised)
            held, epochs = terms.images(held, answers.done), terms.epochs(epochs, answers.done)
        compute = self._training(current.number, *places, held * epochs)
        if answers is not None and terms is not None:
            compute = terms.duration(compute, answers.done)
        compute, upload = self._with_travel(current, compute, *places)
        jobs: list[Job | None] = [None] * len(book.clients)
        record = current.journal.record
        arrays = (at, *places, payments, cores, prices, samples, compute, upload)
        for place, m, client, payment, core, price, images, training, sending in zip(
            *[it.tolist() for it in arrays], strict=True
        ):
            job = self._job(current.slot, names[m], client, core, price, images, training, sending)
            if place == HIRED:
                current.hired.setdefault(m, []).append(job)
            else:
                jobs[place] = job
            record(Kind.AWARD, names[m], client, core, payment)
        if answers is not None:
            for place, promised, done, _, cost in zip(won.tolist(), *(each.tolist() for each in answers), strict=True):
                if job := jobs[place]:
                    job.promised, job.done, job.cost = promised, done, cost
                    job.outcome = job.outcome if promised else Outcome.DECLINED
        rest = iter(jobs)
        current.jobs = {m: list(islice(rest, len(offer.clients))) for m, offer in current.offers.items()}

    def _training(self, number: int, services: IntArray, clients: IntArray, work: IntArray) -> IntArray:
        """Return how long jobs train, given their images times epochs; in whole microseconds."""
        compute = self._times.of(work, self._speed_of[clients])
        if self._jitter:
            compute = stretched(compute, self._jitter, normals(self._jitters, number, services, clients))
        return compute

    def _with_travel(
        self, current: Round, compute: IntArray, services: IntArray, clients: IntArray
    ) -> tuple[IntArray, IntArray]:
        """Return how long jobs fetch their models and train, and how long they send their updates; microseconds."""
        size = np.array([spec.model_bytes for spec in current.services])[services]
        return compute + self._download.of(size, clients), self._upload.of(size, clients)

    def _job(
        self,
        slot: int,
        service: str,
        client: int,
        core: int,
        price: Micro,
        images: int,
        training: Microseconds,
        upload: Microseconds,
        cut: Microseconds = NEVER,  # how long the client is there
    ) -> Job:
        whole = training + upload
        limit = min(self._limit(slot, client, whole) if self._departing else self._patience, cut)
        outcome = Outcome.SERVED if whole <= limit else Outcome.DROPPED
        return Job(service, client, core, price, images, training, upload, limit, outcome)

    def _standing(self, current: Round, taken: Mapping[int, Collection[int]]) -> StandingOffers:
        """Return a period's offers as they stand at its start, given the cores at work of clients that have any."""
        book, world, number = self.book(current), current.world, current.number
        names, places = [spec.name for spec in current.services], (book.services, book.clients)
        samples = world.some(*places).data_size
        epochs = np.array([spec.local_epochs for spec in current.services])[book.services]
        compute = self._training(number, *places, world.held.some(*places).data_size * epochs)
        columns = [
            it.tolist() for it in (book.services, book.payments, samples, *self._with_travel(current, compute, *places))
        ]
        reported, work = iter(columns[2]), list[TrainingJob]()
        for m, offer in current.offers.items():
            clients, images = offer.clients.tolist(), list(islice(reported, len(offer.clients)))
            work += world.held.jobs(names[m], m, clients, None if world.held.at is world.at else images)
        current.jobs = {m: [None] * len(offer.clients) for m, offer in current.offers.items()}
        at = chain.from_iterable(range(len(own)) for own in current.jobs.values())
        rows: dict[int, list[int]] = {}
        for row, client in enumerate(book.clients.tolist()):
            rows.setdefault(client, []).append(row)
        free = np.full(self._population.spec.count, current.conditions.capacity)
        for client, cores in taken.items():
            free[client] -= len(cores)
        return StandingOffers(book, rows, free, list(zip(at, *columns, work, strict=True)))

    def award_standing(
        self,
        current: Round,
        freed: Collection[int] | None,  # the clients whose cores have come free, each for one core; None: as it begins
        came: Collection[int],  # those that have come
        taken: Mapping[int, Collection[int]],  # the cores at work, of clients that have any
        now: Microseconds,
    ) -> list[tuple[int, Job, TrainingJob]]:
        """Let the mechanism decide on the standing offers to clients with free cores; return the jobs, with services.

        They begin now. An offer that is not taken stands until the end of its round.
        """
        if not current.offers:
            return []
        number, standing = current.number, current.standing
        if standing is None:
            standing = current.standing = self._standing(current, taken)
            current.book = standing.book
        rows, free = standing.rows, standing.free
        there: Iterable[int] = rows
        if freed is not None:
            for client in freed:
                free[client] += 1
            there = (c for c in dict.fromkeys([*freed, *came]) if rows.get(c))
        if freed is not None or now % self._slot:  # who leaves in a slot takes no work after its start
            there = (c for c in there if not self._leaves(current.slot, c))
        online = current.conditions.availability
        if online is not None:
            there = (c for c in there if online.is_there(c, now))
        open_rows = sorted(row for c in there if free[c] > 0 for row in rows[c])
        if not open_rows:
            return []
        places = np.array(open_rows, dtype=np.int64)
        part = standing.book.some(places, read_only(free) if taken else current.conditions.cores_of)
        if self.mechanism.clears_standing:
            stand = [standing.terms[row][1] for own in rows.values() for row in own]
            part = replace(part, view=partial(self._seen(current), [None] * len(current.services), stand))
        clearing = clearing_of(self.mechanism, part, number)
        won = (clearing.core != NO_CORE).nonzero()[0]
        awarded, columns = [], (places, clearing.core, clearing.price)
        for row, place, price in zip(*(it[won].tolist() for it in columns), strict=True):
            at, m, payment, samples, compute, upload, work = standing.terms[row]
            service, client = work.service, work.client
            core = free_core(place, taken.get(client, ()))
            cut = NEVER if online is None else online.cut(client, now)
            job = self._job(current.slot, service, client, core, price, samples, compute, upload, cut)
            job.begin(now)
            current.jobs[m][at] = job
            rows[client].remove(row)
            free[client] -= 1
            current.journal.record(Kind.AWARD, service, client, core, payment)
            awarded.append((m, job, work))
        return awarded

    def settle(self, current: Round, accuracies: Sequence[float]) -> None:
        """Work out what comes of the offers taken, given the accuracies so far, and the prices that follow."""
        mechanism = self.mechanism
        if (mechanism.settles or mechanism.learns) and current.book and current.clearing:
            jobs = list(chain.from_iterable(current.jobs.values()))  # in the order of the book
            delivered = np.array([job is not None and job.outcome is Outcome.SERVED for job in jobs], dtype=np.bool_)
            prices, *parts = (np.array([MICRO if job is None else of(job) for job in jobs]) for of in _OF_JOBS)
            known = zip((spec.name for spec in current.services), accuracies, strict=True)
            after = [current.trained[name].accuracy if name in current.trained else old for name, old in known]
            states = np.array(current.before), np.array([round(it, 6) for it in after]), current.number
            fates = Fates(delivered, *parts)
            settled = settlements_of(mechanism, current.book, current.clearing, prices, fates, *states)
            current.deliveries = settled[1]
            for job, price in zip(jobs, settled[0].tolist(), strict=True):
                if job is not None:
                    job.price = price

    def close(self, current: Round) -> None:
        """Let the mechanism learn from a round that is over."""
        if self.mechanism.learns and current.book and current.clearing:
            learn(self.mechanism, current.book, current.clearing, current.deliveries)

    def _clearing(self, current: Round, book: Book) -> Clearing:
        """Return how a round is cleared. Nobody serves an offer refused in an earlier step: its money is free."""
        clearing = clearing_of(self.mechanism, book, current.number)
        if not self.mechanism.keeps_budgets and any(current.lost.values()):
            won = clearing.core != NO_CORE
            for m, client in zip(book.services[won].tolist(), book.clients[won].tolist(), strict=True):
                if client in current.lost.get(m, ()):
                    raise ClearingError(
                        f"mechanism {method(self.mechanism, 'clear')}, round {current.number}, client {client}: "
                        f"serves {current.services[m].name}, whose offer it refused in an earlier step"
                    )
        return clearing

    def _seen(self, current: Round) -> Callable[..., RoundView]:
        """Return what makes a mechanism's view of a round from what changes in it."""
        # Not the round itself, which has the book: a circle would wait for the garbage collector.
        serves = self._population.spec.serves
        known = current.number, current.rounds, current.world, current.services, current.before, serves
        return partial(_round_view, *known)

    def _leaves(self, slot: int, client: int) -> bool:
        return self._departing and self._population.departs(slot, client) is not None

    def _limit(self, slot: int, client: int, whole: Microseconds) -> Microseconds:
        """Return when a job is cut off that would take so long: the platform stops waiting, or the client leaves."""
        part = self._population.departs(slot, client)
        if part is None:
            return self._patience
        return min(self._patience, int(departure(part, whole)))


def _round_view(
    number: int,
    rounds: int,
    world: Qualities,
    specs: Sequence[ServiceSpec],
    before: Sequence[float],
    serves: BoolArray | None,
    left: Sequence[Micro | None],
    wanting: Sequence[int] | IntArray,  # the service of each offer that stands
    record: IntArray | None = None,
) -> RoundView:
    """Return what a mechanism sees of a round."""
    states = (
        before,
        [spec.target_accuracy for spec in specs],
        [inf if it is None else it for it in left],
        [spec.arrival if spec.came is None else spec.came for spec in specs],
    )
    accuracy, target, total_left, arrival = (read_only(np.array(it, dtype=np.float64)) for it in states)
    demand = read_only(np.bincount(np.asarray(wanting, dtype=np.int64), minlength=len(specs)))
    able = read_only(np.ones(world.bid.shape, dtype=np.bool_)) if serves is None else serves
    seen = world.data_size, world.emd, world.seen
    return RoundView(number, rounds, *seen, accuracy, target, total_left, record, arrival, demand, able)


_OF_JOBS = attrgetter("price"), attrgetter("promised"), attrgetter("done")


def training_jobs(current: Round, terms: Terms | None, jobs_of: Mapping[int, Sequence[Job]]) -> list[TrainingJob]:
    """Return what is to be trained in jobs whose updates will arrive, by service; ``terms`` where clients respond."""
    world = current.world
    honest = world.held.at is world.at
    jobs = []
    for m, served in jobs_of.items():
        if served:
            samples = [job.samples for job in served]
            own = world.held.jobs(served[0].service, m, [job.client for job in served], None if honest else samples)
            epochs = current.services[m].local_epochs
            jobs += own if terms is None else terms.training(own, samples, [job.done for job in served], epochs)
    return jobs
