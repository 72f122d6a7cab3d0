"""FedAvg from scratch: served clients' images are drawn again, trained on in plain PyTorch, and averaged by their size.

The run's own models are not in its logs. They are recovered by its own training of the clients in offers.csv, which is
the run's if it comes to the logged accuracies. Each round is then compared from the same model on, because a difference
of one last bit grows from round to round, whoever trains.
"""

from pathlib import Path

import numpy as np
import pytest
import torch

from audit.files import Run
from audit.learning import Round, accuracy, initial, train, vector

TOLERANCE = 4e-7
"""Of each weight after a round: about 100 steps of SGD in single precision, summed in another order."""
LAST_BIT = 6e-8
"""Relative: half of what tells two numbers of single precision apart."""


@pytest.fixture(scope="module")
def run(runs: list[Run]) -> Run:
    """Real training of three services on the digits."""
    [run, _] = [run for run in runs if run.meta["scenario"] == "quickstart" and "strokes" not in run.meta["data"]]
    return run


@pytest.fixture(scope="module")
def models(run: Run) -> dict[tuple[int, str], np.ndarray]:
    """The run's global models by round and service, 0 being the initial ones; trained by the packages."""
    from fl.datasets import load
    from fl.federation import RealFederation, Task
    from fl.jobs import TrainingJob
    from fl.regime import Regime

    regime = {key: value for key, value in run.meta["training"]["digits"].items() if key != "from"}
    tasks = [Task(name, load("digits", Path()), Regime(**regime), None) for name in run.services]
    federation = RealFederation(tasks, run.meta["seed"], workers=0)
    found = {(0, name): federation.state()[f"{name}/model"].copy() for name in run.services}
    for number in run.numbers:
        served = [row for row in run.offers if (row["round"], row["outcome"]) == (str(number), "served")]
        jobs = [TrainingJob(r["service"], int(r["client"]), int(r["data_size"]), float(r["emd"])) for r in served]
        outcomes = federation.train_round(number, jobs)
        for row in run.rounds:
            if int(row["round"]) == number:
                assert f"{outcomes[row['service']].accuracy:.6f}" == row["accuracy"]
                found[number, row["service"]] = federation.state()[f"{row['service']}/model"].copy()
    return found


def test_initial_models_are_those_that_the_docs_describe(run: Run, models: dict[tuple[int, str], np.ndarray]) -> None:
    for name in run.services:
        assert np.array_equal(vector(initial(run.meta["seed"], name)), models[0, name])


def test_each_round_of_training_and_averaging(run: Run, models: dict[tuple[int, str], np.ndarray]) -> None:
    """Each weight is the run's, unless a last bit decides: then it is with another last bit in the weights before."""
    apart = {}
    for number in run.numbers:
        for name in run.services:
            before, after = models[number - 1, name], models[number, name]
            assert not np.allclose(before, after, atol=1e-3)
            apart[number, name] = np.abs(trained(run, number, name, before) - after).max()
    assert len(apart) == 9
    assert np.median(list(apart.values())) < 1e-7
    decided = [key for key, distance in apart.items() if distance >= TOLERANCE]
    assert len(decided) <= 2
    for number, name in decided:
        # An activation so near to 0 that its sign depends on the order of a sum lets a gradient through or does not.
        rng, before = np.random.default_rng(0), models[number - 1, name]
        for _ in range(10):
            other = before * (1 + rng.choice([-LAST_BIT, LAST_BIT], before.size)).astype(np.float32)
            if np.abs(trained(run, number, name, other) - models[number, name]).max() < TOLERANCE:
                break
        else:
            pytest.fail(f"round {number}, {name}: {apart[number, name]} apart")


def trained(run: Run, number: int, name: str, before: np.ndarray) -> np.ndarray:
    """Return the weights after a round of the audit's training, given those before."""
    model = initial(run.meta["seed"], name)
    torch.nn.utils.vector_to_parameters(torch.tensor(before), model.parameters())
    return vector(train(Round(run, number, name), model))


def test_accuracies_from_the_initial_models_on(run: Run) -> None:
    """Without the run's models: what three rounds of training come to are the accuracies in the logs."""
    images, off = 359, []
    for name in run.services:
        model = initial(run.meta["seed"], name)
        for number in run.numbers:
            model = train(Round(run, number, name), model)
            [row] = [row for row in run.rounds if (row["round"], row["service"]) == (str(number), name)]
            off.append(abs(round(images * (accuracy(model) - float(row["accuracy"])))))
    assert max(off) <= 2  # images: a last bit, see above
    assert off.count(0) >= 7


@pytest.mark.parametrize("change", [{"size": 40}, {"client": 3}, {"number": 9}])
def test_other_images_or_another_order_would_be_seen(
    run: Run, models: dict[tuple[int, str], np.ndarray], change: dict[str, int]
) -> None:
    name = next(iter(run.services))
    model = train(Round(run, 1, name, change), initial(run.meta["seed"], name))
    assert np.abs(vector(model) - models[1, name]).max() > 100 * TOLERANCE
