"""The market: one round (the paper's time slot) as a walk through SimPy events.

``open_round`` refreshes data, DQI and bids; ``offer`` takes offers, and asks again those that a mechanism of several
steps refused; ``close_round`` allocates cores, trains in parallel, aggregates, evaluates and pays; then services exit.
``Market._play_slot`` has all steps in their order. Between rounds no event is pending and all state is plain data.
"""

from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import isfinite
from typing import Any, cast

import numpy as np
import simpy

from des.allocation import turns_of
from des.clearing import Platform, training_jobs
from des.clients.data_tables import PopulationSpec
from des.clients.population import Population, Qualities
from des.clock import Microseconds
from des.contracts import Contracts, ContractTerms, total_of
from des.ledger import Ledger
from des.log_records import Kind, Outcome, RoundReport
from des.mechanism import Mechanism, asks_of
from des.mechanisms.pay_as_offered import PayAsOffered
from des.money import Micro, to_micro
from des.observation import Observation, Offer, Turn
from des.ongoing import Ongoing
from des.participation import PublicView, bids_shown, when_next_comes, with_budgets
from des.round_state import Round, round_report
from des.schedule import Conditions, Schedule
from des.service import ServiceSpec, ServiceState
from des.timeline import Clock, Durations, Follow, Job, Journal, Shift
from fl.arithmetic.draws import draw_key
from fl.arrays import BoolArray, FloatArray
from fl.training.jobs import Asynchronous, Diverged, Federation, TrainingOutcome
from fl.training.trigger import Trigger
from flmarket.core.names import unknown


class MarketError(Exception):
    """The market was called out of turn: a round was opened twice, closed unopened or opened after the last one."""


class Market:
    """M services compete for C clients over N rounds.

    Attributes:
        services: with what each may offer in the current round.
        rounds: N.
        round: the last round that was closed, 0 before the first.
        states: one for each service, in order.
        ledger: all money so far.
        contracts: those in force.
        schedule: what each round is played under, past or future: budgets, K, who is offline, and the mechanism.
    """

    def __init__(
        self,
        population: PopulationSpec,
        services: Sequence[ServiceSpec],
        timeline: Durations,
        rounds: int,
        federation: Federation,
        seed: int,
        schedule: Schedule | None = None,
        mechanism: Mechanism | None = None,
        terms: ContractTerms | None = None,
        *,
        sequential: bool = False,
        triggers: Sequence[Trigger] | None = None,
    ) -> None:
        """Create a market before its first round.

        Args:
            population: the clients.
            services: the services that compete.
            timeline: how long things take.
            rounds: N.
            federation: trains the services' models.
            seed: the seed of every random stream.
            schedule: what each round is played under; if not given, the services' budgets and K throughout.
            mechanism: clears the rounds; if not given, ``PayAsOffered``, the paper's.
            terms: the terms on which services hire; if not given, for one round, as in the paper.
            sequential: whether clients come one after another within a round, not all at once.
            triggers: where work may outlast its round, the rule of each service that says when it makes a new model.
        """
        self.services = tuple(services)
        self.rounds, self.round = rounds, 0
        self._timeline, self._federation, self._seed = timeline, federation, seed
        self._names = tuple(spec.name for spec in self.services)
        self._population = Population(population, [s.labels for s in services], [s.dqi for s in services], seed)
        self._platform = Platform(self._population, timeline, mechanism or PayAsOffered(), seed)
        untrained = [(federation.accuracy(name), federation.test_accuracy(name)) for name in self._names]
        self.states = [ServiceState.first(spec, *known) for spec, known in zip(self.services, untrained, strict=True)]
        totals = {spec.name: spec.total_budget for spec in services if spec.total_budget is not None}
        saving = [spec.name for spec in services if spec.budget_cap is not None or timeline.decide]
        self.ledger = Ledger(self._names, population.count, totals, saving)
        self.sequential, self._turns_key = sequential, draw_key(seed, "turns")
        self.contracts = Contracts(terms or ContractTerms(), rounds)
        self._clock = Clock()
        self.ongoing = None  # the work that outlasts its round, if any may
        if timeline.period is not None:
            asynchronous, count = cast("Asynchronous", federation), population.count
            self.ongoing = Ongoing(self._names, triggers or (), asynchronous, timeline, count, self._clock)
        # Every service is there from the first round, with the same budget in each unless an intervention changes it.
        # So rounds under the same conditions need no new look at who takes part and with how much money.
        self._only_interventions_change_rounds = (
            not totals
            and not saving
            and self.contracts.terms.rounds == 1
            and all(spec.arrival == 1 for spec in services)
        )
        always = Conditions({spec.name: spec.budget for spec in services}, population.cores)
        self.schedule = schedule or Schedule(always)
        self._conditions = self.schedule.first
        self._current: Round | None = None
        self._offers_in = simpy.Event(self._clock)  # opening a round replaces this, and the process that plays it
        self._slot: simpy.Event = self._offers_in

    @property
    def now(self) -> Microseconds:
        """The simulated time."""
        return self._clock.now

    @property
    def timeline(self) -> Durations:
        """The durations of training and travel, and the clients' availability."""
        return self._timeline

    @property
    def federation(self) -> Federation:
        """The federation that trains the services' models."""
        return self._federation

    @property
    def population(self) -> Population:
        """The clients: how many there are, their cores, and the range of their data's quality."""
        return self._population

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism that clears the rounds."""
        return self._platform.mechanism

    @property
    def outlasting(self) -> str:
        """What a market does because of which rounds are not over when they end, in words; empty if they are."""
        if self.ongoing is not None:
            return "has work that outlasts rounds (timeline.mode)"
        return "hires for several rounds (market.contract_rounds)" if self.contracts.terms.rounds > 1 else ""

    @property
    def finished(self) -> bool:
        """Whether no further round follows: the last one is over, or every service has left."""
        return self._is_last(self.round)

    def state(self) -> dict[str, Any]:
        """Return what the market needs to continue from here, as plain data. The federation keeps its own state.

        A round that is open is opened again by whoever continues.

        Raises:
            MarketError: services have offered in the open round.
        """
        if self._current is not None and self._current.step:
            self._require_closed()
        ledger = self.ledger.state()
        # whoever resumes opens this round again, which grants its budget: it must not be counted twice
        for account in ledger["accounts"].values():
            account["granted"] -= account["free"] + account["held"]
            account["free"] = account["held"] = 0
        return {
            "round": self.round,
            "now": self.now,
            "services": {name: state.plain() for name, state in zip(self._names, self.states, strict=True)},
            "ledger": ledger,
            "mechanism": self._platform.state(),
            "behaviour": self._population.state(),
            "contracts": self.contracts.state(),
            **({} if self.ongoing is None else {"ongoing": self.ongoing.state()}),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a ``state`` of a market with the same scenario and seed.

        Random draws need not be restored: each comes from a stream that is keyed by its round.
        """
        self.round = state["round"]
        self._clock = Clock(state["now"])
        self.states = [ServiceState.of(state["services"][name]) for name in self._names]
        self.ledger.restore(state["ledger"])
        self.contracts.restore(state["contracts"])
        if self.ongoing is not None:
            self.ongoing.restore(state["ongoing"], self._clock)
        self._reserve()
        self._impose(self.round)
        self._platform.restore(state["mechanism"])
        self._population.restore(state["behaviour"])

    def seat(self, service: str, policy: str, *, privileged: bool) -> None:
        """Name the policy that decides for a service from the next round on; see ``ServiceSpec``.

        Raises:
            MarketError: a round is open, or the service is unknown.
        """
        self._require_closed()
        if service not in self._names:
            raise MarketError(unknown("service", service, self._names))
        self.services = tuple(
            replace(spec, policy=policy, privileged=privileged) if spec.name == service else spec
            for spec in self.services
        )

    def close(self) -> None:
        """Release what the federation holds. No further round can be played."""
        self._federation.close()

    def open_round(self) -> dict[str, Observation]:
        """Refresh the clients' data and collect their bids.

        Returns:
            What each service that still takes part observes, by name, in the scenario's order.

        Raises:
            MarketError: a round is open, or the market is finished.
        """
        self._require_closed()
        if self.finished:
            raise MarketError(f"the market finished after round {self.round}")
        bids_closed, self._offers_in = self._clock.event(), self._clock.event()
        self._slot = self._clock.process(self._play_slot(bids_closed))
        return cast("dict[str, Observation]", self._clock.run(until=bids_closed))

    def offer(self, offers: Mapping[str, Offer]) -> dict[str, Observation]:
        """Take the offers of the services that were asked.

        Args:
            offers: one from each service that ``open_round``, or this method, returned last; by name.

        Returns:
            What services observe that may offer again because an offer of theirs was refused; their budget is what is
            left. Always empty unless the mechanism clears a round in several steps, or clients come one after another.

        Raises:
            MarketError, OfferError, ClearingError: as in ``close_round``.
        """
        current = self._open()
        names = {self._names[m] for m in current.offering}
        if set(offers) != names:
            raise MarketError(f"offers must come from {sorted(names)}, not from {sorted(offers)}")
        if names:
            self._platform.take(current, offers, self.ledger)
        return self._observations(current) if current.offering else {}

    def close_round(self, offers: Mapping[str, Offer] | None = None) -> RoundReport:
        """Play the open round to its end with the services' offers.

        Args:
            offers: one from each service that was asked, by name; None if ``offer`` has taken them.

        Raises:
            MarketError: no round is open, or there is not exactly one offer from each service that takes part.
            OfferError: an offer breaks a constraint. The round stays open, and nothing in it has changed.
            ClearingError: the mechanism broke a rule.
            BehaviourError: a client behaviour of a plug-in failed.
            Diverged: a model's training diverged.
        """
        if offers is not None:
            self.offer(offers)
        current = self._open()
        if current.offering and (current.step == 0 or current.turns):
            raise MarketError("clients are still to come" if current.step else "no service has offered")
        self._offers_in.succeed()
        return cast("RoundReport", self._clock.run(until=self._slot))

    def preview(self, service: str) -> Observation:
        """Return what a service that takes no part, or no more, would observe in the next round."""
        m, number = self._names.index(service), self.round + 1
        slot = self._slot_of(number)
        conditions = self.schedule.at(number, slot)
        services = zip(self.services, self.states, strict=True)
        present = {i for i, (spec, state) in enumerate(services) if state.takes_part(spec, slot)}
        world = self._world(number)
        view = self._view(number, conditions, world, bids_shown(world.bid, present))
        unable = None if world.serves is None else ~world.serves[m]
        return self._observation(m, view, self.services[m].budget, unable)

    def _open(self) -> Round:
        if self._current is None:
            raise MarketError("no round is open")
        return self._current

    def _require_closed(self) -> None:
        if self._current is not None:
            raise MarketError(f"round {self._current.number} is still open")

    def _play_slot(self, bids_closed: simpy.Event) -> Generator[simpy.Event, Any, RoundReport]:
        """Play one time slot, step by step. This is the platform's process."""
        current = self._refresh(self.round + 1)
        self._collect_bids(current)
        bids_closed.succeed(self._observations(current))
        yield self._offers_in  # in the meantime ``offer`` takes them
        if self.ongoing is not None:
            yield from self._play_period(current, self.ongoing)
            return self._end(current)
        if current.active:
            self._platform.award(current, self.ledger)
        jobs = {m: current.served(m) for m in current.jobs}
        training = training_jobs(current, self._population.spec.response, jobs)
        current.trained = self._federation.train_round(current.number, training)
        self._require_finite(current)
        self._platform.settle(current, [state.accuracy for state in self.states])
        yield from self._work(current)  # each service has its model, and pays, as soon as it has its updates
        for m in current.active if self.mechanism.settles_together else ():
            self._pay(m, current)
        if self._timeline.slot is not None:
            yield self._clock.timeout(max(0, current.start + to_micro(self._timeline.slot) - self._clock.now))
        return self._end(current)

    def _refresh(self, number: int) -> Round:
        """Begin a round: its conditions hold, and clients have new data. Services arrive whose first round it is."""
        self._impose(number)
        active = tuple(m for m, state in enumerate(self.states) if state.active)
        world, journal = self._world(number), Journal(self._clock, number)
        asks = asks_of(self.mechanism, world.bid, world.data_size, number, world.serves)
        contracts = self.contracts.due(self._conditions.offline)
        journal.record(Kind.REFRESH)
        self._current = Round(
            number,
            self.rounds,
            self._slot_of(number),
            self.now,
            self.services,
            active,
            self._conditions,
            world,
            asks,
            tuple([round(state.accuracy, 6) if self.round else 0.0 for state in self.states]),
            tuple([self.ledger.left(name) for name in self._names]),
            journal,
            offering=active,
            contracts=contracts,
            due=total_of((it.service, it.price) for it in contracts),
            turns=self._turns(number, world) if self.sequential else (),
        )
        return self._current

    def _turns(self, number: int, world: Qualities) -> list[int]:
        """Return the clients in the order in which they come in a round."""
        serves = np.ones(world.bid.shape, np.bool_) if world.serves is None else world.serves
        return turns_of(self._turns_key, number, serves, self._conditions.offline)

    def _collect_bids(self, current: Round) -> None:
        """Let services know the clients' bids, and have their budgets, of which contracts take what they cost."""
        lowest, due = current.world.bid.min(axis=1).tolist(), current.due
        for m in current.active:
            current.journal.record(Kind.BID, self._names[m], amount=lowest[m])
            self.ledger.grant(self._names[m], self.services[m].budget)
            if m in due:
                self.ledger.hold(self._names[m], due[m])

    def _work(self, current: Round) -> Generator[simpy.Event, Any, None]:
        """Let clients do their jobs; each service is settled when its last job is done."""
        jobs_of = {m: current.at_work(m) for m in current.jobs}
        for m in current.active:
            if not jobs_of.get(m):
                self._settle(m, current)
        shift, journal, whose = Shift(self._clock), current.journal, dict[int, int]()
        for m, jobs in jobs_of.items():
            for job in jobs:
                job.begin(self.now)
                whose[shift.begin(job)] = m
                journal.record(Kind.TRAIN_START, job.service, job.client, job.core)
        left = {m: len(jobs) for m, jobs in jobs_of.items()}

        def end(number: int, job: Job) -> Follow | None:
            if job.outcome is Outcome.SERVED:
                journal.record(Kind.UPLOAD, job.service, job.client, job.core)
            m = whose[number]
            left[m] -= 1
            return None if left[m] else partial(self._settle, m, current)

        yield from shift.play(journal, end)

    def _require_finite(self, current: Round) -> None:
        for name, outcome in current.trained.items():
            if not isfinite(outcome.accuracy):
                raise Diverged(name, current.number, None)

    def _play_period(self, current: Round, ongoing: Ongoing) -> Generator[simpy.Event, Any, None]:
        """Play a round whose work may outlast it: models are made as updates arrive, and evaluated at its end."""
        number, journal, ledger, federation = current.number, current.journal, self.ledger, ongoing.federation
        losses: dict[tuple[str, int], float] = {}

        def award(freed: Collection[int] | None, came: Collection[int]) -> list[tuple[int, Job, float | None]]:
            awarded = self._platform.award_standing(current, freed, came, ongoing.taken, self.now)
            for _, job, _ in awarded:
                ledger.commit(job.service, job.price)
            if work := [work for _, job, work in awarded if job.outcome is Outcome.SERVED]:
                begun = federation.begin(number, work, current.slot)
                of = {service: iter(own.tolist()) for service, own in begun.items()}
                losses.update({(it.service, it.client): next(of[it.service]) for it in work})
            return [(m, job, losses.get((job.service, job.client))) for m, job, _ in awarded]

        coming = self._coming(current)
        made = yield from ongoing.play(number, journal, ledger, current.active, award, coming)
        current.end, current.length = self.now, ongoing.slots(self.now - current.start)
        renewed = {it.service for it in made}
        federation.evaluate([name for name in self._names if name in renewed])
        trained = {}
        for m in current.active:
            name, own = self._names[m], np.array([losses[it.service, it.client] for it in current.served(m)])
            trained[name] = TrainingOutcome(federation.accuracy(name), own, federation.test_accuracy(name))
        current.trained = trained
        self._require_finite(current)
        for m in current.active:
            name = self._names[m]
            if name in renewed:
                self._evaluate(m, current, trained[name])
            ledger.lapse(name)
            if self._leaves(m, current):
                federation.forget(name)
        if over := self._is_last(number):
            # whoever is still at work is waited for and paid, though no model follows
            made += yield from ongoing.play(number, journal, ledger, (), None)
        for m, state in enumerate(self.states):
            if state.status.gone:  # what comes back of clients that do not deliver is of no use any more
                ledger.lapse(self._names[m])
                ledger.leave(self._names[m])
            elif over:
                ledger.lapse(self._names[m])
        current.models = tuple(made)
        current.completed = {self._names[m]: tuple(ongoing.completed[m]) for m in current.active}

    def _coming(self, current: Round) -> list[tuple[Microseconds, int]]:
        """Return when which clients come in a round's slot that may change something: those that have offers.

        Where services decide again as cores come free, all may.
        """
        if (online := current.conditions.availability) is None:
            return []
        found = online.coming(self.now, current.slot * to_micro(self._timeline.period or 0))
        if "free" in self._timeline.decide:
            return found
        wanted = {client for offer in current.offers.values() for client in offer.clients.tolist()}
        return [it for it in found if it[1] in wanted]

    def _settle(self, m: int, current: Round) -> None:
        """End a service's work: it aggregates, evaluates, and pays, unless all pay together."""
        name = self._names[m]
        outcome = current.trained.get(name)
        if outcome is not None:
            current.journal.record(Kind.AGGREGATE, name, amount=sum([job.samples for job in current.served(m)]))
            self._evaluate(m, current, outcome)
        if not self.mechanism.settles_together:
            self._pay(m, current)

    def _pay(self, m: int, current: Round) -> None:
        """End a service's round: it pays its clients, and exits if it met its target."""
        name, journal = self._names[m], current.journal
        served = current.served(m)
        for job in served:
            self.ledger.pay(name, job.client, job.price)
            journal.record(Kind.PAY, name, job.client, amount=job.price)
        self.ledger.lapse(name)
        if self.contracts.length(current.number) > 1:
            hired = ((job.client, job.core, job.price) for job in served if job not in current.hired.get(m, ()))
            self.contracts.sign(current.number, m, hired)
        if self._leaves(m, current):
            for client, fee in self.contracts.cancel(current.number, m):
                self.ledger.cancel(name, client, fee)
                current.fees[m] = current.fees.get(m, 0) + fee
                journal.record(Kind.CANCEL, name, client, amount=fee)

    def _evaluate(self, m: int, current: Round, outcome: TrainingOutcome) -> None:
        """Let a service know how accurate its new model is."""
        state = self.states[m]
        state.accuracy, state.test_accuracy = outcome.accuracy, outcome.reported
        current.journal.record(Kind.EVALUATE, self._names[m], amount=state.accuracy)

    def _leaves(self, m: int, current: Round) -> bool:
        """Let a service leave if it has met its target, or its patience is over; return whether it does."""
        state, name = self.states[m], self._names[m]
        if leaves := state.leave_at(current.services[m], self._slot_of(current.number + 1) - 1):
            current.journal.record(Kind.EXIT, name, amount=state.accuracy)
            self.ledger.leave(name)
        return leaves

    def _end(self, current: Round) -> RoundReport:
        """Close the books of a round, let clients learn from it, and report it."""
        self.round, clients = current.number, self._population
        if self.contracts.terms.rounds > 1:
            self.contracts.end_round(self.round)
            self._reserve()
        self.ledger.check()
        self._platform.close(current)
        end = self.now if current.end is None else current.end
        report = round_report(current, self.states, end=end, last=self.finished, truthful=clients.truthful)
        clients.close(self.round, ((offer.service, offer.client, offer.paid) for offer in report.offers), self._names)
        for state in self.states:
            state.end_round()
        self._current = None
        return report

    def _world(self, number: int) -> Qualities:
        """Draw a round's world; clients under a contract, or at work for a service, serve it no more."""
        world = self._population.draw(self._slot_of(number))
        serves = self.contracts.open_clients(world.serves, world.bid.shape)
        if self.ongoing is not None:
            serves = self.ongoing.serves(number, serves)
        return world if serves is world.serves else replace(world, serves=serves)

    def slots_left(self, report: RoundReport) -> float:
        """Return how many slots may follow a round; those in which the market then waits for clients are among them."""
        rounds, slots = self.rounds - report.round, self._timeline.slots
        if slots is None or self.ongoing is None:
            return rounds
        return max(0.0, min(rounds, slots - self.ongoing.slots(report.start) - report.length))

    def _is_last(self, number: int) -> bool:
        """Return whether a round that ends now is the last: by its number, by its slot, or as all services left."""
        slots = self._timeline.slots
        out_of_time = slots is not None and self._slot_of(number + 1) > slots
        return number >= self.rounds or out_of_time or not any(state.stays for state in self.states)

    def _slot_of(self, number: int) -> int:
        """Return the number of the slot in which a round begins now."""
        return number if self.ongoing is None else self.ongoing.slot(self.now)

    def _reserve(self) -> None:
        """Let the ledger know what services owe after the last round that was closed."""
        self.ledger.reserved = {self._names[m]: it for m, it in self.contracts.outstanding(self.round + 1).items()}

    def _impose(self, number: int) -> None:
        """Apply a round's conditions from here on."""
        slot = self._slot_of(number)
        conditions = self.schedule.at(number, slot)
        if self._only_interventions_change_rounds and conditions is self._conditions:
            return
        self._conditions = conditions
        self._platform.play_by(conditions.rules)
        for spec, state in zip(self.services, self.states, strict=True):
            state.begin_round(spec, slot)
        due = total_of((self._names[it.service], it.price) for it in self.contracts.due(conditions.offline))
        length, whole, comes_in = self.contracts.length(number), conditions.budgets, conditions.budgets
        if self.ongoing is not None:
            arrival = {spec.name: spec.arrival for spec in self.services}
            comes_in = {it: self.ongoing.comes_in(of, arrival[it], self.now) for it, of in whole.items()}
        self.services = with_budgets(self.services, self.states, whole, comes_in, self.ledger, due, length)

    def _observations(self, current: Round) -> dict[str, Observation]:
        """Return what each service that may offer now observes."""
        accounts, turn = self.ledger.accounts, current.turn
        money = {m: accounts[self._names[m]].free for m in current.offering}
        if turn is not None and current.seen:
            seen = {
                m: when_next_comes(current.seen[m], self._seed, turn, budget=free, unwilling=current.unwilling(m))
                for m, free in money.items()
            }
        else:
            bids = bids_shown(current.asks.least, current.active)
            view = self._view(current.number, current.conditions, current.world, bids)
            seen = {m: self._observation(m, view, free, current.unwilling(m), turn) for m, free in money.items()}
            current.seen = {} if turn is None else seen
        return {self._names[m]: it for m, it in seen.items()}

    def _view(self, number: int, conditions: Conditions, world: Qualities, bids: FloatArray) -> PublicView:
        return PublicView(
            round=number,
            rounds=self.rounds,
            seed=self._seed,
            services=self._names,
            world=world,
            bids=bids,
            cores=conditions.cores,
            offline=conditions.offline,
            public_bids=self._population.spec.disclosure.public_bids,
            over_budget=self.mechanism.keeps_budgets,
            cores_of=conditions.cores_of,
        )

    def _observation(
        self,
        m: int,
        view: PublicView,
        budget: Micro,
        unwilling: BoolArray | None = None,
        turn: Turn | None = None,
    ) -> Observation:
        spec = self.services[m]
        return view.of(
            m,
            budget=budget,
            total_left=self.ledger.left(spec.name),
            accuracy=self.states[m].accuracy,
            target_accuracy=spec.target_accuracy,
            privileged=spec.privileged or self._population.spec.disclosure.public_data,
            unwilling=unwilling,
            progress=None if self.ongoing is None else self.ongoing.progress(m, self.now),
            turn=turn,
        )
