"""GPS-AFL against its rule worked by hand, and the tables of README.md.

``python papers/gps-afl/check.py`` prints the tables, ``... check.py benchmark`` the accuracies of the benchmark.
"""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import flmarket
from flmarket import mean_interval

HERE = Path(__file__).parent
SHORT = {"sweep": {}, "training.backend": "surrogate"}
"""Settings with which the scenario plays in a second."""

THEIRS = {"Run_k60": (60, 24), "run_k60_2": (60, 21), "run_k30_3_MNIST": (30, 21), "run_k30_3_FMNIST": (30, 23)}
"""Figures of the public code: how many clients there are, and for how many rounds one of them alone is paid."""


def gps(**options: Any) -> Any:
    """Return the policy for a buyer of four clients, 80 rounds, with a budget of 3."""
    context = flmarket.PolicyContext(
        "buyer", services=1, clients=4, cores=1, rounds=80, budget=3, target_accuracy=1, reward_base=60
    )
    return flmarket.load_plugin(HERE / "plugins.py").GPSAFL(
        context, benchmark=[0.1 + 0.01 * n for n in range(80)], **options
    )


def seen(asks: list[float], number: int = 9, accuracy: float = 0.5) -> flmarket.Observation:
    bids = np.array([asks])
    return flmarket.Observation(
        number, 80, "buyer", ("buyer",), np.ones(4), bids, budget=6, cores=1, accuracy=accuracy, target_accuracy=1,
        key=bytes(32),
    )  # fmt: skip


def outcome(offer: flmarket.Offer, losses: list[float], accuracy: float) -> flmarket.Feedback:
    """Return what comes of an offer that all clients serve."""
    served = np.ones(len(offer.clients), np.bool_)
    return flmarket.Feedback(
        9, accuracy, 1.0, served, ~served, offer.payments, np.array(losses), flmarket.Status.TRAINING
    )


def in_round(policy: Any, queue: float, passed: list[float], failed: list[float]) -> Any:
    """Set what the policy knows of four clients, all of which were hired before."""
    policy.restore(
        {"queue": np.array(queue), "counts": np.array([passed, failed], np.float64), "last_loss": np.ones(4)}
    )
    return policy


def check_without_a_queue_the_lowest_ask_alone_is_hired() -> None:
    policy = in_round(gps(), 0, [0, 0, 0, 0], [0, 0, 0, 0])
    assert policy.act(seen([1.2, 1.0, 1.5, 1.000001])).clients.tolist() == [1]
    assert sorted(policy.act(seen([1.2, 1.0, 1.5, 1.0])).clients.tolist()) == [1, 3]  # exactly the same
    assert len(policy.act(seen([1.0, 1.0, 1.0, 1.0])).clients) == 3  # as long as the round's budget lasts


def check_with_a_queue_those_of_good_reputation_are_hired_by_hand() -> None:
    """Reputations (8+1)/(9+2) = 0.82, 0.5, 0.82, 0.82: good ones ask 1 + 1.5 + 2 = 4.5; 0.5 + 4.5 - 1 = 4 is there."""
    asks, policy = [1.0, 0.9, 1.5, 2.0], in_round(gps(), 0.5, [8, 0, 8, 8], [1, 0, 1, 1])
    assert np.allclose(policy.reputations, [9 / 11, 0.5, 9 / 11, 9 / 11])
    offer = policy.act(seen(asks))
    hired, spent = offer.clients.tolist(), float(offer.payments.sum())
    assert 1 not in hired
    assert spent <= 4 < spent + min(asks[i] for i in (0, 2, 3) if i not in hired)
    assert offer.payments.tolist() == [asks[i] for i in hired]
    # The benchmark gains 0.01 a round. Who gains no more has a queue of 0.5 + 4.5 - spent, who gains more has none.
    for gained, queue in ((0.01 - 1e-9, 5 - spent), (0.02, 0.0)):
        policy = in_round(gps(), 0.5, [8, 0, 8, 8], [1, 0, 1, 1])
        policy.learn(seen(asks), offer, outcome(offer, [0.5] * len(hired), 0.5 + gained))
        assert abs(policy.queue - queue) < 1e-12


def check_who_asks_more_is_paid_more() -> None:
    """All fit: Q = 3, and good clients ask at least 1 + 1 + 1; the first is hired at 1 and at 1.5."""
    for ask in (1.0, 1.5):
        offer = in_round(gps(), 3, [8, 8, 8, 0], [1, 1, 1, 0]).act(seen([ask, 1.0, 1.0, 9.0]))
        assert offer.payments[offer.clients == 0].tolist() == [ask]


def check_the_first_comparison_outweighs_all_later_ones() -> None:
    """A client that fails it never has a good reputation, even if it passes in all later rounds; and the reverse."""
    for first, least, most in ((2.0, 0.0, 0.5), (0.5, 0.5, 1.0)):
        policy, loss = gps(threshold=0.5), 1.0
        asks = [1.0, 9.0, 9.0, 9.0]
        for number in range(1, 81):
            offer = flmarket.Offer(np.array([0]), np.array([1.0]))
            policy.learn(seen(asks, number), offer, outcome(offer, [loss], 0.5))
            if number > 1:
                assert least <= policy.reputations[0] <= most
            loss *= first if number == 1 else 1 / first


def code_hires(clients: int, seed: int, rounds: int = 80, budget: float = 5, fee: float = 0.05) -> list[int]:
    """Return how many clients the public code hires in each round after the first, in doubles, while there is no queue.

    All are hired in the first round, so that the lowest price ever paid is the lowest ask.
    """
    random = Random(seed)
    asks = [random.uniform(0.8, 3) for _ in range(clients)]
    lowest, hired = min(asks), []
    for _ in range(1, rounds):
        spent, idle = 0.0, []
        for i in random.sample(range(clients), clients):
            if asks[i] == lowest and spent + asks[i] + fee <= budget:
                spent += asks[i] + fee
            else:
                idle.append(i)
        hired.append(clients - len(idle))
        for i in idle:
            asks[i] = random.uniform(asks[i], lowest)
    return hired


def alone(clients: int, seed: int) -> int:
    """Return for how many rounds the public code pays for one client alone; its figures have the first round, too."""
    return next(n for n, hired in enumerate(code_hires(clients, seed), 1) if hired > 1)


def check_the_figures_are_those_of_asks_that_meet_in_doubles() -> None:
    for clients in (30, 60):
        lengths = [alone(clients, seed) for seed in range(200)]
        theirs = [rounds for number, rounds in THEIRS.values() if number == clients]
        assert min(lengths) <= min(theirs) <= max(theirs) <= max(lengths)


def played(settings: Mapping[str, Any], seeds: Iterable[int] = (0,)) -> tuple[Any, Any]:
    """Return the rounds and the offers of runs with other settings of the scenario."""
    flmarket.load_plugin(HERE / "plugins.py")
    scenario = flmarket.load(HERE / "scenario.toml", {"sweep": {}, **settings})
    with TemporaryDirectory() as out:
        results = flmarket.run(scenario, seeds=seeds, out=out, progress=False)
        return results.rounds, results.offers


def second_hired(rounds: Any) -> Any:
    """Return for each seed the first round after the first one in which more than one client is hired."""
    return rounds[(rounds["round"] > 1) & (rounds.served > 1)].groupby("seed")["round"].min()


def check_the_smaller_the_coin_the_longer_one_client_is_alone() -> None:
    """Until then, whoever is hired asks least."""
    found = []
    for coin in (0.1, 0.000001):
        rounds, offers = played({**SHORT, "rounds": 30, "clients.behaviour.options.coin": coin})
        found.append(int(second_hired(rounds)[0]))
        early = offers[(offers["round"] > 1) & (offers["round"] < found[-1])]
        assert (early.bid == offers.bid.min()).all()
    assert found[0] < 6 < found[1]


RIVALS: Mapping[str, Mapping[str, Any]] = {
    "gps-afl": {},
    "gps-afl, coin 0.01": {"clients.behaviour.options.coin": 0.01},
    "gps-afl, coin 0.1": {"clients.behaviour.options.coin": 0.1},
    "cheapest": {"services.buyer.policy": "cheapest"},
    "lcfa": {"services.buyer.policy": "lcfa"},
    "random": {"services.buyer.policy": "random"},
    "all": {"services.buyer.policy": "random", "services.buyer.budget": 1000, "services.buyer.budget_cap": 1000},
}
"""What is compared; ``random`` with money for all clients is ``all``, and its accuracies are the benchmark."""


def rival(name: str, **more: Any) -> dict[str, Any]:
    options = {} if name.startswith("gps") else {"services.buyer.policy_options": {}}
    return {**RIVALS[name], **options, **more}


def _interval(values: Any, digits: int = 1) -> str:
    return mean_interval(values).text(f",.{digits}f")


def table(backend: str, seeds: range, names: Iterable[str]) -> None:
    """Print a row for each rule: means over seeds, and what ``gps-afl`` has more, within seeds."""
    first: Any = None
    for name in names:
        rounds, _ = played(rival(name, **{"training.backend": backend}), seeds)
        of = rounds.groupby("seed")
        last = 100 * rounds[rounds["round"] == 80].groupby("seed").test_accuracy.mean()
        each = {"spent": of.spent.sum(), "utility": 100 * of.accuracy.sum() - of.spent.sum(), "last accuracy": last}
        first = each if first is None else first
        more = {key: f"gps-afl: {_interval(first[key] - each[key])} more" for key in each}
        second = _interval(second_hired(rounds).reindex(seeds, fill_value=80))
        print(f"{name}, n = {len(seeds)}: second client in round {second}")
        for key in each:
            print(f"    {key}: {_interval(each[key])}; {more[key]}")


def poison(seeds: range) -> None:
    """Print how many of those that are hired after round 20 train on wrong labels, where 20 of 60 clients do."""
    groups = [{"name": "flippers", "count": 20, "label_flip": 1.0}]
    for name in ("gps-afl", "random"):
        _, offers = played(rival(name, **{"clients.groups": groups, "training.backend": "real"}), seeds)
        hired = offers[(offers.outcome == "served") & (offers["round"] > 20)]
        print(name, _interval(100 * (hired.client < 20).groupby(hired.seed).mean()), "%")


def main() -> None:
    if sys.argv[1:] == ["benchmark"]:
        rounds, _ = played(rival("all", **{"training.backend": "surrogate"}), range(100, 105))
        print([round(float(it), 4) for it in rounds.groupby("round").accuracy.mean()])
        return
    for clients in (30, 60):
        lengths = np.array([alone(clients, seed) for seed in range(1000)])
        low, high = np.quantile(lengths, [0.025, 0.975])
        print(f"{clients} clients: one is alone for {_interval(lengths)} rounds, 95 % of them in [{low:g}, {high:g}]")
    table("surrogate", range(20), RIVALS)
    table("real", range(5), ["gps-afl", "cheapest", "lcfa", "random"])
    poison(range(5))


if __name__ == "__main__":
    main()
