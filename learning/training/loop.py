"""Trains a learner: episodes with exploration, evaluations without, a log, and states to resume from.

A training is a function of its plan: every random draw is keyed by (training seed, episode), and the state that is
saved between episodes holds everything that learning depends on. Resumed after any kill, it gives the same bytes.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from des.log_records import Outcome, RoundReport
from des.market import Market
from des.observation import Feedback, Observation, Offer
from fl.arithmetic.streams import stream
from fl.surrogate.learning_curves import Curve, SurrogateFederation, Trained
from flmarket.core.errors import RunError
from flmarket.core.tracking import tracked
from learning.play_round import play_round
from learning.policy import Policy
from learning.training import agent_files, records
from learning.training.agent_files import CheckpointError, Tensors
from learning.training.records import Preferences, Row

MOST_EVALUATED_MARKETS = 16  # an evaluation plays no more of them, evenly spaced among those of the training


@dataclass(frozen=True, slots=True)
class MarketShape:
    """The shape of a market, which a learner must know before the first round."""

    services: tuple[str, ...]  # names of all services of the market, in order
    clients: int  # C
    cores: int  # K
    rounds: int  # N
    reward_bases: Mapping[str, float]  # Omega of each service, by name
    # the learning curve that each service knows, by name; None where it knows none
    curves: Mapping[str, Curve | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a training: its length and its markets."""

    episodes: int = 200  # markets played while learning
    seed: int = 0  # the training's seed: networks, exploration, replay and the markets' seeds are drawn from it
    epsilon: tuple[float, float] = (1.0, 0.05)  # probability of a random action at the start and at the end
    epsilon_episodes: int = 100  # episodes over which epsilon falls, on a straight line
    evaluate_every: int = 25  # episodes between two evaluations; a state to resume from is saved with each
    # seeds of the markets of an evaluation, which no episode plays
    evaluation_seeds: tuple[int, ...] = (900_001, 900_002, 900_003)
    # of each market, the services that take turns to learn; where that is none, all learn at once
    seats: tuple[tuple[str, ...], ...] = ((),)
    together: int = 1  # how many services of the seats learn in the same episode; 0: a number drawn for each

    def epsilon_at(self, episode: int) -> float:
        """Return the probability of a random action in an episode, from 1."""
        start, end = self.epsilon
        return max(end, start - (start - end) * (episode - 1) / max(self.epsilon_episodes, 1))

    def market_seed(self, episode: int) -> int:
        """Return the seed of an episode's market: at least 2^31, so never that of an evaluation or of a usual run."""
        return int(stream(self.seed, "episode", episode).integers(2**31, 2**62))

    def market_index(self, episode: int) -> int:
        """Return which of its markets a training plays in an episode: all in turn, in an order drawn for each pass."""
        turn, place = divmod(episode - 1, len(self.seats))
        return int(stream(self.seed, "markets", turn).permutation(len(self.seats))[place])

    def learners(self, episode: int) -> tuple[str, ...]:
        """Return who learns in an episode: the seats in turn, or some of them drawn at random; none if all learn."""
        seats = self.seats[self.market_index(episode)]
        if not seats:
            return ()
        if self.together == 1 and len(self.seats) == 1:
            return seats[episode % len(seats) :][:1]
        rng = stream(self.seed, "episode", episode, "learners")
        drawn = rng.permutation(len(seats))
        number = self.together or int(rng.integers(1, len(seats) + 1))
        return tuple(seats[index] for index in sorted(drawn[:number]))

    def evaluations(self) -> Iterator[tuple[int, int, tuple[str, ...]]]:
        """Yield (market index, market seed, seats) of each market of an evaluation.

        A single market is played under all evaluation seeds and in all seats. Of several, each is played once: in one
        seat in turn, if there are any.
        """
        if len(self.seats) == 1:
            for seed in self.evaluation_seeds:
                for name in self.seats[0] or (None,):
                    yield 0, seed, () if name is None else (name,)
            return
        chosen = range(0, len(self.seats), max(1, -(-len(self.seats) // MOST_EVALUATED_MARKETS)))
        for turn, market_index in enumerate(chosen):
            seats = self.seats[market_index]
            seed = self.evaluation_seeds[turn % len(self.evaluation_seeds)]
            yield market_index, seed, seats[turn % len(seats) :][:1] if seats else ()


@dataclass(slots=True)
class EpisodeRecord:
    """The record of an episode, as a training has it at the end."""

    curves: Mapping[str, Curve]  # the learning curve of each service
    # by service, what it trained on in each round in which it took part; None where it had no clients
    rounds: dict[str, list[Trained | None]] = field(default_factory=dict)

    @classmethod
    def of(cls, market: Market) -> Self | None:
        """Return what is known of a market before its first round; None if its services train models."""
        return cls(market.federation.curves) if isinstance(market.federation, SurrogateFederation) else None

    def add(self, report: RoundReport) -> None:
        images: dict[str, list[tuple[int, int, float]]] = {name: [] for name in report.losses}
        for place, offer in enumerate(report.offers):
            if offer.outcome is Outcome.SERVED:
                held = offer if report.clients is None else report.clients[place]  # the truth, whatever was reported
                images[offer.service].append((held.data_size, offer.data_size, held.emd))
        for name, clients in images.items():
            self.rounds.setdefault(name, []).append(Trained.on(clients) if clients else None)


class Learner(ABC):
    """The base class of agents that can be trained: those of ``learning.mahdrl``."""

    def begin(self, episode: int, market_index: int = 0) -> None:  # noqa: B027 - may be empty
        """Start an episode in one of the markets that are learned from."""

    @abstractmethod
    def act(self, observations: Mapping[str, Observation], epsilon: float) -> dict[str, Offer]:
        """Return offers, exploring with probability ``epsilon``; with 0, nothing that is learned may change."""

    def observe(
        self, observations: Mapping[str, Observation], offers: Mapping[str, Offer], feedback: Mapping[str, Feedback]
    ) -> dict[str, float]:
        """Take in what came of a round; return the losses by name."""
        return {}

    def remember(  # noqa: B027 - may be empty
        self, observations: Mapping[str, Observation], offers: Mapping[str, Offer], feedback: Mapping[str, Feedback]
    ) -> None:
        """Remember what came of a round to the end of the run, as an agent does that plays and does not learn."""

    def end(self, record: EpisodeRecord | None = None) -> dict[str, float]:
        """End the episode, of which ``record`` is known on learning curves; return the losses by name."""
        return {}

    def state(self) -> Tensors:
        """Return everything that later learning depends on."""
        return {}

    def restore(self, state: Tensors) -> None:  # noqa: B027 - may be empty
        """Continue from a ``state``."""

    def agent(self) -> Tensors:
        return {}


@dataclass(frozen=True, slots=True)
class SeatedMarket:
    """A market at its start, and who plays it."""

    market: Market  # before its first round
    learners: tuple[str, ...]  # names of the services that learn
    rivals: Mapping[str, Policy]  # policies of all other services, by name
    market_index: int = 0  # among those of the training


OpenMarket = Callable[[int, int, int, Sequence[str]], AbstractContextManager[SeatedMarket]]
"""Opens a market, given (market index, episode, market seed, seats): those in the seats learn; without seats, all."""


def train(
    learner: Learner,  # a new one
    open_market: OpenMarket,  # opens each market
    plan: Plan,  # how long and on what
    out: Path,  # file of the agent, ``NAME.safetensors``; see ``agent_files`` for what goes next to it
    provenance: Mapping[str, Any],  # part of the agent's description; must be the same when a training is resumed
    about: Mapping[str, Any],  # another part of it, which may change: versions, revision
    *,
    resume: bool = False,  # continue from the last state in ``NAME.training``, if there is one
    report: Callable[[Row], None] = lambda _: None,  # called with every row of the log
    # returns what other policies reach in the markets of an evaluation, which is recorded for those who watch; None if
    # that takes long
    baselines: Callable[[], Mapping[str, Row]] | None = None,
) -> None:
    """Train to the end of the plan and write the agent."""
    # Networks this small gain nothing from a second thread, and the bits of a sum depend on how many there are.
    torch.set_num_threads(1)
    # As it will be read from JSON: tuples become lists.
    identity = json.loads(json.dumps({"plan": asdict(plan), "provenance": dict(provenance)}))
    done = 0
    curve: list[dict[str, Any]] = []
    if resume and (state := agent_files.restore_last_state(out, identity, learner.restore)) is not None:
        done, curve = state["episode"], state["curve"]
        # A training may be resumed to become longer. Exploration ends where it did in the plan that it began with: the
        # episodes that have been played explored by it.
        epsilon_episodes = state["plan"]["epsilon_episodes"]
        plan = replace(plan, epsilon_episodes=epsilon_episodes)
        identity["plan"]["epsilon_episodes"] = epsilon_episodes
        if plan.episodes < done:
            raise CheckpointError(
                f"{agent_files.folder_of(out)}: {done} episodes have been played already, more than {plan.episodes}; "
                "raise the number of episodes"
            )
    elif resume and out.exists():
        raise CheckpointError(
            f"{out}: already exists, but {agent_files.folder_of(out)} has no state to resume from; choose another file"
        )
    with records.log_of(out, done) as log, records.preferences_of(out, done) as preference_log:
        records.record_plan(out, {**identity, "about": about})
        if baselines is not None and not (resume and records.has_baselines(out)):
            records.record_baselines(out, baselines())
        for episode in range(done + 1, plan.episodes + 1):
            epsilon = plan.epsilon_at(episode)
            seed, seats = plan.market_seed(episode), plan.learners(episode)
            with open_market(plan.market_index(episode), episode, seed, seats) as seated:
                row = play_episode(learner, seated, episode, epsilon, learn=True)
            log.write([row.values()])
            report(row)
            _require_finite(learner, row)
            if episode % plan.evaluate_every and episode != plan.episodes:
                continue
            preferences = Preferences()
            row = _evaluate(learner, open_market, plan, episode, preferences)
            preference_log.write(preferences.rows(episode))
            log.write([row.values()])
            report(row)
            curve.append({"episode": episode, "auc": row.auc, "reward": row.reward, "markup": row.markup})
            preference_log.sync()
            log.sync()
            agent_files.write_state(out, learner.state(), identity, episode, curve)
    description = {**provenance, "plan": identity["plan"], "about": about, "curve": curve}
    agent_files.write(out, "agent", learner.agent(), description)


def play_episode(
    learner: Learner,
    seated: SeatedMarket,
    episode: int,
    epsilon: float,
    *,
    learn: bool,
    preferences: Preferences | None = None,
) -> Row:
    """Play one market to the end, or until no learner is left in it; return the row of the log."""
    market, mine = seated.market, set(seated.learners)
    observations: dict[str, Observation] = {}
    offers: dict[str, Offer] = {}

    def act(asked: Mapping[str, Observation]) -> Mapping[str, Offer]:
        observations.update((name, observation) for name, observation in asked.items() if name in mine)
        if observations:  # none before the first of them arrives
            offers.update(learner.act(observations, epsilon))
        return offers

    tally = _Tally({name: [] for name in seated.learners})
    learner.begin(episode, seated.market_index)
    record = EpisodeRecord.of(market) if learn else None
    while not market.finished and any(
        state.stays for spec, state in zip(market.services, market.states, strict=True) if spec.name in mine
    ):
        observations, offers = {}, {}
        report = play_round(market, seated.rivals, act)
        feedback = {name: report.feedback[name] for name in observations}
        tally.add(observations, offers, feedback)
        if preferences is not None:
            for name, observation in observations.items():
                preferences.add(observation, offers[name], feedback[name])
        if record is not None:
            record.add(report)
        if learn and observations:
            tally.gather(learner.observe(observations, offers, feedback))
        learner.remember(observations, offers, feedback)
    if learn:
        tally.gather(learner.end(record))
    return tally.row(market, episode, "train" if learn else "evaluate", epsilon)


@dataclass(slots=True)
class _Tally:
    """The sums of an episode, for its row in the log."""

    accuracies: dict[str, list[float]]  # of each learner, after each round in which it took part
    losses: dict[str, list[float]] = field(default_factory=dict)
    bid: float = 0.0  # the sum of the bids of all clients that got an offer, money
    offered: float = 0.0  # the sum of the offers

    def add(
        self, observations: Mapping[str, Observation], offers: Mapping[str, Offer], feedback: Mapping[str, Feedback]
    ) -> None:
        for name, observation in observations.items():
            self.bid += float(observation.own_bids[offers[name].clients].sum())
            self.offered += float(offers[name].payments.sum())
            self.accuracies[name].append(feedback[name].accuracy)

    def gather(self, losses: Mapping[str, float]) -> None:
        for name, value in losses.items():
            self.losses.setdefault(name, []).append(value)

    def row(self, market: Market, episode: int, phase: str, epsilon: float) -> Row:
        specs = {spec.name: spec for spec in market.services}
        # [N] accuracies: the last one is held to the last round.
        held = {
            name: np.concatenate([values, np.full(market.rounds - len(values), values[-1])])
            for name, values in self.accuracies.items()
        }
        # Omega^(accuracy - target), at most 1: the paper's reward on one scale for all services.
        rewards = [
            np.mean(specs[name].reward_base ** np.minimum(values - specs[name].target_accuracy, 0.0))
            for name, values in held.items()
        ]
        return Row(
            episode=episode,
            phase=phase,
            epsilon=epsilon,
            reward=float(np.mean(rewards)),
            auc=float(np.mean([values.mean() for values in held.values()])),
            reached=float(np.mean([values[-1] >= specs[name].target_accuracy for name, values in held.items()])),
            markup=self.offered / self.bid - 1.0 if self.bid > 0 else 0.0,
            losses={name: float(np.mean(values)) for name, values in self.losses.items()},
        )


def _evaluate(learner: Learner, open_market: OpenMarket, plan: Plan, episode: int, preferences: Preferences) -> Row:
    """Play the markets of an evaluation; return the mean row of the log, and note what the agent preferred."""
    rows = []
    for market_index, seed, seats in tracked(list(plan.evaluations()), "markets of the evaluation"):
        with open_market(market_index, 0, seed, seats) as seated:
            rows.append(play_episode(learner, seated, episode, 0.0, learn=False, preferences=preferences))
    return mean_row(rows, episode)


def mean_row(rows: Sequence[Row], episode: int) -> Row:
    """Return the row of an evaluation: the means of those of its markets and seats."""
    means = {
        name: float(np.mean([getattr(row, name) for row in rows])) for name in ("reward", "auc", "reached", "markup")
    }
    return Row(episode=episode, phase="evaluate", epsilon=0.0, losses={}, **means)


def _require_finite(learner: Learner, row: Row) -> None:
    """Stop a training whose networks hold values that are not finite."""
    weights_finite = all(np.isfinite(values).all() for values in learner.agent().values())
    if not weights_finite or not np.isfinite(list(row.losses.values())).all():
        raise RunError(f"episode {row.episode}: training diverged; lower the learning rate")
