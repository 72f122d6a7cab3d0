"""GPS-AFL as its public code has it: who is hired when, and clients that lower what they ask until they are hired."""

import numpy as np

from flmarket import Behaviour, Policy, behaviour, fill_budget, measure, policy


@policy("cheapest")
class Cheapest(Policy):
    """Hires whoever asks the least, and who asks exactly the same, at what they ask; all clients in the first round."""

    def act(self, observation):
        asks, there, money = observation.own_bids, observation.available, self.context.budget
        if observation.round > 1 and there.any():
            there = there & (asks == asks[there].min())
        return self._hired(observation, there, money)

    def _hired(self, observation, those, money):
        """Return offers to some clients, in an order that is drawn, as long as the money lasts."""
        order = observation.rng().permutation(observation.clients)
        return fill_budget(order, observation.own_bids, min(money, observation.budget), available=those)


@policy("gps-afl")
class GPSAFL(Cheapest):
    """Hires more than the cheapest client in rounds after which a queue has grown: then, whoever has a good reputation.

    Args:
        benchmark: the accuracy of a benchmark after each round; the queue may grow where a round gains no more than it.
        threshold: from what reputation on clients count as good.
        weight: V, what is taken off the money for such a round.
    """

    def __init__(self, context, *, benchmark, threshold=0.7, weight=1.0):
        super().__init__(context)
        if len(benchmark) < context.rounds:
            raise ValueError(f"benchmark has {len(benchmark)} accuracies, fewer than {context.rounds} rounds")
        if context.rounds > 1000:
            raise ValueError("a reputation halves what a round counts from one to the next: 1,000 rounds at most")
        self.benchmark, self.threshold, self.weight = benchmark, threshold, weight
        self.queue = 0.0
        self.counts = np.zeros((2, context.clients))  # passes and failures, weighted
        self.last_loss = np.full(context.clients, np.nan)  # of those that were hired

    @property
    def reputations(self):
        """[C] the share of passes, between 0 and 1; 0 for a client that was never hired."""
        passed, failed = self.counts
        return np.where(np.isnan(self.last_loss), 0.0, (passed + 1) / (passed + failed + 2))

    def act(self, observation):
        if self.queue <= 0:
            return super().act(observation)
        good = observation.available & (self.reputations >= self.threshold)
        return self._hired(observation, good, max(self.queue + self._asked(observation) - self.weight, 0.0))

    def _asked(self, observation):
        """Return what all clients of good reputation ask, together."""
        return float(observation.own_bids[self.reputations >= self.threshold].sum())

    def learn(self, observation, offer, feedback):
        asked, n = self._asked(observation), observation.round  # asked before reputations change
        gained = feedback.accuracy - observation.accuracy
        slow = n > 1 and gained <= self.benchmark[n - 1] - self.benchmark[n - 2]
        self.queue = max(0.0, self.queue + (asked if slow else 0.0) - float(feedback.paid.sum()))
        for client, loss in zip(offer.clients[feedback.served], feedback.losses[feedback.served], strict=True):
            if not np.isnan(self.last_loss[client]):
                self.counts[0 if loss < self.last_loss[client] else 1, client] += 2.0 ** (observation.rounds - n + 1)
            self.last_loss[client] = loss

    def state(self):
        return {"queue": np.array(self.queue), "counts": self.counts, "last_loss": self.last_loss}

    def restore(self, state):
        self.queue = float(state["queue"])
        self.counts, self.last_loss = state["counts"].copy(), state["last_loss"].copy()


@behaviour("toward-lowest")
class TowardLowest(Behaviour):
    """A client that is not hired asks less: a number drawn between what it asked and the lowest price ever paid.

    Args:
        span: clients ask at first between the highest cost and this share of it more.
        coin: the smallest coin; all that clients ask is a multiple of it.
    """

    def __init__(self, *, span: float = 2.75, coin: float = 0.000001):
        if not (span >= 0 and coin >= 0.000001):
            raise ValueError("span must not be below 0, coin not below 0.000001")
        self.span, self.coin = span, round(coin * 1e6)

    def begin(self, setting):
        self.setting = setting
        self.asks = self._coined(setting.highest[:, None] * (1 + self.span * self._draws(0)))
        self.lowest = np.full((setting.services, 1), np.inf)

    def _draws(self, round_):
        """Return a number of each client for each service, [M, clients], that goes by the client's number alone."""
        numbers = self.setting.numbers
        rng = np.random.default_rng((self.setting.seed, round_))
        return rng.random((int(numbers.max(initial=0)) + 1, self.setting.services))[numbers].T

    def _coined(self, money):
        return (np.rint(money / self.coin) * self.coin).astype(np.int64)

    def bids(self, round_, costs):
        return np.maximum(self.asks, costs)

    def bid_range(self, lowest, highest):
        return lowest, np.maximum(highest, (self.setting.highest * (1 + self.span)).astype(np.int64) + self.coin)

    def close(self, round_, outcomes):
        served = outcomes.served
        idle = np.ones_like(self.asks, dtype=np.bool_)
        idle[outcomes.services[served], outcomes.clients[served]] = False
        np.minimum.at(self.lowest[:, 0], outcomes.services[served], outcomes.paid[served])
        idle &= self.lowest < self.asks
        asked = self.asks + (np.where(idle, self.lowest, self.asks) - self.asks) * self._draws(round_)
        self.asks = np.where(idle, self._coined(asked), self.asks)

    def state(self):
        return {"asks": self.asks.tolist(), "lowest": np.where(np.isinf(self.lowest), -1, self.lowest).tolist()}

    def restore(self, state):
        self.asks = np.array(state["asks"], np.int64).reshape(self.asks.shape)
        lowest = np.array(state["lowest"], np.float64).reshape(self.lowest.shape)
        self.lowest = np.where(lowest < 0, np.inf, lowest)


@measure("utility-less-cost", better="more", per_service="mean", digits=1)
def utility(run):
    """Accuracy in percentage points less money paid, summed over the rounds: the utility of the public code."""
    of = run.rounds.groupby("service")
    return 100 * of["accuracy"].sum() - of["spent"].sum()


@measure("second-hired", better=None, per_service="mean", digits=1)
def second_hired(run):
    """The first round after the first one in which more than one client is hired; the number of rounds if none is."""
    later = run.rounds[(run.rounds["round"] > 1) & (run.rounds["served"] > 1)]
    return later.groupby("service")["round"].min().reindex(run.services, fill_value=run.rounds["round"].max())
