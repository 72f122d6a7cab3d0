"""FedFairMMFL: clients draw tasks as its formula says, and take turns as its public code lets them."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from scipy.stats import chisquare

import flmarket
from flmarket.testing import clear_round

HERE = Path(__file__).parent
SHORT = {
    "runs": [],
    "market.options.alpha": 3.0,
    "clients.data_size": [20],
    "training.local_epochs": 1,
    "training.eval_samples": 100,
}
"""Settings with which the scenario plays in a second."""


CLAIMS = [
    {
        "rule": "alpha-fair",
        "markets": 20,
        "by": "nobody is paid in the public code",
        "note": "draws do not look at bids; bids are paid",
    },
    {
        "rule": "round-robin",
        "markets": 20,
        "by": "nobody is paid in the public code",
        "note": "turns do not look at bids; bids are paid",
    },
]
"""How papers/certificates.md comes by its verdicts, by the fields of ``Claim`` (tools/certificates.py)."""


def tasks(mechanism: str, accuracy: list[float], clients: int, number: int = 1, **options: float) -> np.ndarray:
    """Return the task that each client trains in a round in which all services name all clients, [clients]."""
    flmarket.load_plugin(HERE / "plugins.py")
    made, nothing = flmarket.registered("mechanism", mechanism)(**options), np.zeros((len(accuracy), clients))
    served = ~np.isnan(clear_round(made, nothing, 0, 0, seed=7, number=number, accuracy=accuracy))
    assert (served.sum(axis=0) == 1).all()  # one task each
    return served.argmax(axis=0)


def check_tasks_are_drawn_as_the_formula_says() -> None:
    """Accuracies .9, .8 and .5, alpha 3: in proportion to .1^2, .2^2 and .5^2, which is 1, 4 and 25 of 30."""
    drawn = np.bincount(tasks("alpha-fair", [0.9, 0.8, 0.5], 30_000, alpha=3.0))
    assert chisquare(drawn, [1000, 4000, 25000]).pvalue > 0.001
    drawn = np.bincount(tasks("alpha-fair", [0.9, 0.8, 0.5], 30_000, alpha=2.0))
    assert chisquare(drawn, [3750, 7500, 18750]).pvalue > 0.001


def check_with_an_alpha_of_one_all_tasks_are_equally_likely_and_with_a_large_one_the_worst_gets_all() -> None:
    assert chisquare(np.bincount(tasks("alpha-fair", [0.9, 0.8, 0.5], 30_000, alpha=1.0))).pvalue > 0.001
    assert (tasks("alpha-fair", [0.9, 0.8, 0.5], 1000, alpha=100.0) == 2).all()


def check_a_task_that_is_perfect_or_has_not_begun_can_be_drawn_for() -> None:
    assert chisquare(np.bincount(tasks("alpha-fair", [0.0, 0.0, 0.0], 30_000))).pvalue > 0.001
    assert set(tasks("alpha-fair", [1.0, 0.99, 0.98], 1000).tolist()) == {1, 2}


def check_in_three_rounds_a_client_has_had_each_task_once_by_turns() -> None:
    turns = np.array([tasks("round-robin", [0.9, 0.8, 0.5], 21, number) for number in (1, 2, 3)])
    assert np.sort(turns, axis=0).tolist() == [[m] * 21 for m in range(3)]
    assert [np.bincount(turn).tolist() for turn in turns] == [[7, 7, 7]] * 3


def check_in_a_played_market_tasks_get_clients_by_the_accuracy_of_the_round_before() -> None:
    """As many as its accuracy in the round before says, for each task over five rounds."""
    flmarket.load_plugin(HERE / "plugins.py")
    with TemporaryDirectory() as out:
        played = flmarket.run(flmarket.load(HERE / "scenario.toml", SHORT | {"rounds": 5}), out=out, progress=False)
        rounds = played.rounds
    pivot = rounds.pivot_table(index="round", columns="service", values=["accuracy", "served"])
    expected = (1 - pivot["accuracy"].shift(1, fill_value=0.0)) ** 2
    expected = 20 * expected.div(expected.sum(axis=1), axis=0)
    assert (pivot["served"].sum(axis=1) == 20).all()
    assert chisquare(pivot["served"].sum(), expected.sum()).pvalue > 0.001
