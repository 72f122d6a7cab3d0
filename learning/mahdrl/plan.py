"""The plan of a training: how long it takes, in which markets, under which seeds, and who learns in each episode."""

from collections.abc import Iterator
from dataclasses import dataclass

from fl.streams import stream

EVALUATED = 16  # most markets that an evaluation plays, evenly spaced among those of the training


@dataclass(frozen=True, slots=True)
class Plan:
    """How long and on what to train."""

    episodes: int = 200  # markets played while learning
    seed: int = 0  # the training's seed: networks, exploration, replay and the markets' seeds are drawn from it
    epsilon: tuple[float, float] = (1.0, 0.05)  # probability of a random action at the start and at the end
    epsilon_episodes: int = 100  # episodes over which epsilon falls, on a straight line
    evaluate_every: int = 25  # episodes between two evaluations; a state to resume from is saved with each
    # seeds of the markets of an evaluation, which no episode plays
    evaluation_seeds: tuple[int, ...] = (900_001, 900_002, 900_003)
    # of each market, the services that take turns to learn; where that is none, all learn at once
    seats: tuple[tuple[str, ...], ...] = ((),)
    together: int = 1  # how many services of the seats learn in the same episode; 0: a number drawn anew in each

    def epsilon_at(self, episode: int) -> float:
        """Return the probability of a random action in an episode, from 1."""
        start, end = self.epsilon
        return max(end, start - (start - end) * (episode - 1) / max(self.epsilon_episodes, 1))

    def market_seed(self, episode: int) -> int:
        """Return the seed of an episode's market: at least 2^31, so never that of an evaluation or of a usual run."""
        return int(stream(self.seed, "episode", episode).integers(2**31, 2**62))

    def market(self, episode: int) -> int:
        """Return the place of an episode's market: all are played, in an order drawn anew, before any is again."""
        turn, place = divmod(episode - 1, len(self.seats))
        return int(stream(self.seed, "markets", turn).permutation(len(self.seats))[place])

    def learners(self, episode: int) -> tuple[str, ...]:
        """Return who learns in an episode: the seats in turn, or some of them drawn at random; none if all learn."""
        market = self.market(episode)
        seats = self.seats[market]
        if not seats:
            return ()
        if self.together == 1 and len(self.seats) == 1:
            return seats[episode % len(seats) :][:1]
        rng = stream(self.seed, "episode", episode, "learners")
        drawn = rng.permutation(len(seats))
        number = self.together or int(rng.integers(1, len(seats) + 1))
        return tuple(seats[index] for index in sorted(drawn[:number]))

    def evaluations(self) -> Iterator[tuple[int, int, tuple[str, ...]]]:
        """Yield (market, market seed, seats) of each market of an evaluation.

        A single market is played under all evaluation seeds and in all seats. Of several, each is played once: in one
        seat in turn, if there are any.
        """
        if len(self.seats) == 1:
            for seed in self.evaluation_seeds:
                for name in self.seats[0] or (None,):
                    yield 0, seed, () if name is None else (name,)
            return
        chosen = range(0, len(self.seats), max(1, -(-len(self.seats) // EVALUATED)))
        for turn, market in enumerate(chosen):
            seats = self.seats[market]
            seed = self.evaluation_seeds[turn % len(self.evaluation_seeds)]
            yield market, seed, seats[turn % len(seats) :][:1] if seats else ()
