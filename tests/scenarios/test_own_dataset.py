"""A market over a user's own data set, whose images are small and in colour: from its function to the logs of a run."""

import csv
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import Tensor, nn

from fl.data.own_dataset import NAMES
from fl.data.registry import dataset
from fl.training.models import model as named
from fl.training.regime import Regime
from fl.training.trainers import Engine
from flmarket.core.errors import InputError
from scenarios.build import Shelf
from scenarios.loader import load, parse
from scenarios.playable import obstacles
from scenarios.running.batch import notes, run_all
from scenarios.running.batch_run import Run
from scenarios.running.planning import plan
from scenarios.running.run_options import RunOptions
from scenarios.running.runner import execute
from support.observers import Strict
from support.scenarios import problems

SCENARIO = """\
name = "lamps"
rounds = 5
dqi = "published"

[clients]
count = 6
cores = 1
data_size = [20, 40]
emd = [0.0, 0.6]
cost = { per_sample = 0.05, per_emd = 0.5 }

[training]
local_epochs = 3
learning_rate = 0.1

[[services]]
name = "alpha"
dataset = "lamps"
budget = 8
target_accuracy = 1.0
reward_base = 60
policy = "d-first"
"""


def lamps(images: int = 240, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Noisy images [n, 3, 12, 10], and which of a lamp's three colours is on."""
    rng = np.random.default_rng(seed)
    labels = np.arange(images) % 3
    pixels = rng.integers(150, size=(images, 3, 12, 10))
    pixels[np.arange(images), labels, 3:9, 2:8] += 100
    return pixels.astype(np.uint8), labels


@pytest.fixture(autouse=True)
def registered() -> None:
    dataset("lamps")(lambda: (*lamps(), *lamps(90, seed=1)))


def play(out: Path, *overrides: str, workers: int = 0) -> Run:
    """Play the scenario, and return its one run."""
    scenario, shelf = parse(SCENARIO, overrides=overrides), Shelf()
    (run,) = run_all(plan([scenario], [], [0], out, shelf), shelf, Strict(), RunOptions(workers=workers)).complete
    return run


def accuracies(run: Run) -> list[float]:
    with (run.directory.path / "rounds.csv").open() as file:
        return [float(row["accuracy"]) for row in csv.DictReader(file)]


@pytest.mark.slow
@pytest.mark.parametrize("model", ["cnn", "mlp", "resnet8"])
def test_its_models_learn(model: str, tmp_path: Path, files_of: Callable[[Path], dict[str, bytes]]) -> None:
    run = play(tmp_path / "a", f"training.model={model}")
    assert accuracies(run)[-1] > 0.85  # a third by chance
    meta = run.directory.meta()
    assert meta["kernel"] == {"alpha": Engine(Shelf().get("lamps"), Regime(model=model)).kernel}
    assert not meta["data"]["lamps"]["official"]
    assert meta["data"]["lamps"]["sha256"] == dict(Shelf().get("lamps").digests)
    assert meta["images"]["lamps"] == Shelf().get("lamps").images | {"unused": {}}
    assert f"data set lamps: {Shelf().get('lamps').sizes}" in (run.directory.path / "run.log").read_text()
    play(tmp_path / "b", f"training.model={model}", workers=2)
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")


def test_notes_say_that_it_is_ones_own_and_that_the_fused_kernel_cannot_train_it() -> None:
    measured, *others = notes([parse(SCENARIO)], Shelf())[1:]
    assert measured.startswith("data set 'lamps' has the DQI of parameters that were measured on other data; ")
    assert others == [
        "data set 'lamps' is a plug-in: meta.json holds its digests; publish them with any result",
        "the fused kernel trains the cnn on images of 1 x 28 x 28 or 3 x 32 x 32, not 3 x 12 x 10; training takes the "
        "reference path, which is about ten times slower (docs/performance.md)",
    ]
    assert len(notes([parse(SCENARIO, overrides=["training.kernel=reference"])], Shelf())) == 3


def test_a_function_that_draws_without_a_seed_is_named_with_what_is_wrong(tmp_path: Path) -> None:
    dataset("lamps")(lambda: (*lamps(seed=None), *lamps(90, seed=1)))  # type: ignore[arg-type]
    (run,) = plan([parse(SCENARIO)], [], [0], tmp_path, Shelf())
    dataset("lamps")(lambda: (*lamps(seed=None), *lamps(90, seed=1)))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^data set 'lamps': its function returns other train-images than when the "):
        execute(run, Shelf())


def test_runs_on_other_images_of_the_same_name_go_into_another_folder(tmp_path: Path) -> None:
    scenario = parse(SCENARIO)
    (before,) = plan([scenario], [], [0], tmp_path, Shelf())
    dataset("lamps")(lambda: (*lamps(seed=2), *lamps(90, seed=1)))
    (after,) = plan([scenario], [], [0], tmp_path, Shelf())
    assert before.digest != after.digest


def test_a_data_set_that_cannot_be_loaded_is_a_problem_of_the_services_that_name_it() -> None:
    def broken() -> Any:
        raise FileNotFoundError(2, "No such file or directory", "lamps.npz")

    dataset("lamps")(broken)
    line = inspect.getsourcelines(broken)[1]
    assert problems(SCENARIO) == [
        f"f:18: services.alpha.dataset: data set 'lamps' ({__file__}:{line}): raised FileNotFoundError: "
        f"[Errno 2] No such file or directory: 'lamps.npz' ({__file__}:{line + 1}, in broken)"
    ]


def test_too_few_images_are_a_problem_of_the_clients() -> None:
    dataset("lamps")(lambda: (*lamps(30), *lamps(90)))
    assert problems(SCENARIO) == [
        "f:8: clients.data_size: 20 images at EMD 0.6 can need 12 of one of the 3 labels; the rarest label of "
        "lamps has 10, of which training.validation = 0.1 leaves 9",
        "f:8: clients.data_size: 40 images are more than the 30 training images of lamps",
    ]


def test_scenarios_that_do_not_name_it_never_load_it() -> None:
    dataset("lamps")(lambda: pytest.fail("was loaded"))
    assert load("quickstart").services


def table(rows: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of 4 features [n, 4], of quite different sizes, and which of three clouds each is from."""
    rng = np.random.default_rng(seed)
    labels = np.arange(rows) % 3
    sizes = [1e-3, 1.0, 1e3, 1e4]
    return ((np.eye(4)[labels] * 3 + rng.normal(size=(rows, 4))) * sizes).astype(np.float32), labels


@pytest.mark.parametrize("model", ["logistic", "mlp"])
def test_the_kernel_trains_on_rows_of_features(
    model: str, tmp_path: Path, files_of: Callable[[Path], dict[str, bytes]]
) -> None:
    dataset("lamps")(lambda: (*table(), *table(90, seed=1)))
    run = play(tmp_path / "a", f"training.model={model}")
    assert accuracies(run)[-1] > 0.85  # a third by chance
    assert run.directory.meta()["kernel"] == {"alpha": Engine(Shelf().get("lamps"), Regime(model=model)).kernel}
    assert "each 4 features, standardised" in (run.directory.path / "run.log").read_text()
    play(tmp_path / "b", f"training.model={model}", workers=2)
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")


def test_features_in_a_file_are_learned_as_those_of_a_function_are(tmp_path: Path) -> None:
    (x_train, y_train), (x_test, y_test) = table(), table(90, seed=1)
    dataset("lamps")(lambda: (x_train, y_train, x_test, y_test))
    path = str(tmp_path / "table.npz")
    np.savez(path, x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test)
    assert Shelf().get(path).digests == Shelf().get("lamps").digests
    run = play(tmp_path / "a", "training.model=logistic", f"services.alpha.dataset={path}")
    assert accuracies(run)[-1] > 0.85


@pytest.mark.parametrize("model", ["cnn", "resnet8"])
def test_a_model_with_convolutions_is_a_problem_where_there_are_no_images(model: str) -> None:
    dataset("lamps")(lambda: (*table(), *table(90, seed=1)))
    (mistake,) = obstacles(Shelf(), parse(SCENARIO, overrides=[f"training.model={model}"]))
    assert mistake.path == ("training", "model")
    assert str(mistake.message) == f'model {model!r} needs images, not 4 features; choose model = "logistic" or "mlp"'


def sentences(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Five words by their numbers [n, 1, 5], and which label the second one has."""
    words = np.random.default_rng(seed).integers(40, size=(rows, 1, 5), dtype=np.uint8)
    return words, words[:, 0, 1] % 2


class Whole(nn.Module):
    """Makes whole numbers of its inputs."""

    def forward(self, x: Tensor) -> Tensor:
        return x.long()


def test_numbers_of_words_reach_an_embedding_as_they_are_if_the_data_set_says_so(tmp_path: Path) -> None:
    arrays = dict(zip(NAMES[0], (*sentences(400, 0), *sentences(100, 1)), strict=True))

    @named("words")
    def words(labels: int) -> Any:
        return nn.Sequential(nn.Flatten(), Whole(), nn.Embedding(256, 4), nn.Flatten(), nn.Linear(20, labels))

    dataset("lamps")(lambda: arrays | {"standardise": False})
    run = play(tmp_path, "training.model=words", "training.learning_rate=1", "rounds=8")
    assert accuracies(run)[-1] > 0.8  # half by chance
