"""The validation split: images that no client is given, and the two accuracies that come of it."""

import hashlib
from typing import Any

import numpy as np
import pytest
import torch

from fl.data.dataset import Dataset
from fl.data.registry import load
from fl.data.validation_split import held_out, left_at_least, split
from fl.training.federation import RealFederation
from fl.training.jobs import TrainingJob
from fl.training.networks import build
from fl.training.regime import Regime
from fl.training.tasks import Task

REGIME = Regime(model="mlp", batch_size=10, learning_rate=0.05)
SERVICES = ("alpha", "beta")


@pytest.fixture(scope="module")
def digits() -> Dataset:
    """1,438 images of handwritten digits; the rarest label has 139."""
    return load("digits")


def federation(dataset: Dataset, share: float = 0.1, seed: int = 0, **options: Any) -> RealFederation:
    return RealFederation([Task(name, dataset, REGIME, validation=share, **options) for name in SERVICES], seed)


def prints(pixels: np.ndarray) -> set[str]:
    """The digests that tell images apart."""
    return {hashlib.sha256(image.tobytes()).hexdigest() for image in pixels}


def test_each_label_gives_its_share(digits: Dataset) -> None:
    sizes = np.bincount(digits.train_labels)
    for share in (0.1, 0.25, 0.5):
        found = split(digits.by_label, digits.info.name, share, seed=3)
        given = np.bincount(digits.train_labels[found.held_out], minlength=10)
        assert len(found.held_out) == held_out(len(digits.train_labels), share)
        assert (np.abs(given - share * sizes) < 1).all()
        assert min(map(len, found.by_label)) >= left_at_least(int(sizes.min()), share)


def test_a_tenth_is_a_tenth() -> None:
    """0.1 as a 64-bit number is more than a tenth, and 0.29 is less than 29 hundredths."""
    assert [held_out(images, 0.1) for images in (9, 10, 30, 1438)] == [0, 1, 3, 143]
    assert held_out(100, 0.29) == 29
    assert left_at_least(139, 0.1) == 125  # 13.9 images at most are 14
    assert left_at_least(139, 0.0) == 139


def test_every_image_is_held_out_or_given_to_clients(digits: Dataset) -> None:
    found = split(digits.by_label, digits.info.name, 0.1, seed=0)
    everything = np.sort(np.concatenate([found.held_out, *found.by_label]))
    assert everything.tolist() == list(range(len(digits.train_labels)))
    for label, pool in enumerate(found.by_label):
        assert (digits.train_labels[pool] == label).all()


def test_seeds_and_data_sets_have_splits_of_their_own(digits: Dataset) -> None:
    one, again, other = (
        set(split(digits.by_label, digits.info.name, 0.1, seed).held_out.tolist()) for seed in (0, 0, 1)
    )
    assert one == again
    assert 0 < len(one & other) < len(one) / 2  # about a tenth is in both


def test_without_a_share_clients_have_all_images(digits: Dataset) -> None:
    found = split(digits.by_label, digits.info.name, 0.0, seed=0)
    assert len(found.held_out) == 0
    assert [pool.tolist() for pool in found.by_label] == [pool.tolist() for pool in digits.by_label]


def test_a_share_of_too_few_images_is_refused(digits: Dataset) -> None:
    with pytest.raises(ValueError, match=r"a share of 0\.0001 of 1438 training images is not one image"):
        split(digits.by_label, digits.info.name, 0.0001, seed=0)


def test_no_client_is_ever_given_an_image_that_is_held_out(digits: Dataset) -> None:
    """Of both services, which share the split, whatever lasts of a client; images are told apart by their pixels."""
    learners = federation(digits, 0.3)._learners
    validation = prints(digits.train_images[split(digits.by_label, digits.info.name, 0.3, seed=0).held_out])
    assert [prints(learner.loop.pixels) for learner in learners.values()] == [validation, validation]
    seen: dict[str, set[str]] = {name: set() for name in SERVICES}
    for name, learner in learners.items():
        for round_ in range(1, 26):
            for client in range(8):
                for mix in (None, 0):
                    job = TrainingJob(name, client, 160, 1.0, mix=mix)
                    seen[name] |= prints(learner.client_data(0, round_, job).pixels)
    twins = prints(digits.train_images) - validation  # a few images are in the data set twice
    for found in seen.values():
        assert found <= twins
        assert len(found) > 0.95 * len(twins)


def test_both_accuracies_are_what_torch_counts(digits: Dataset) -> None:
    """One round of three clients; then the global model, loaded into the network, looks at both sets of images."""
    trained = federation(digits)
    jobs = [TrainingJob("alpha", client, 120, 0.2) for client in range(3)]
    outcome = trained.train_round(1, jobs)["alpha"]
    network = build("mlp", 10, digits.info.shape, 0, "model", "alpha")
    torch.nn.utils.vector_to_parameters(torch.from_numpy(trained.state()["alpha/model"]), network.parameters())

    def counted(pixels: np.ndarray, labels: np.ndarray) -> float:
        with torch.no_grad():
            guesses = network(torch.from_numpy(pixels.astype(np.float32) * digits.scale + digits.offset)).argmax(1)
        return float((guesses.numpy() == labels).mean())

    held = split(digits.by_label, digits.info.name, 0.1, seed=0).held_out
    assert outcome.accuracy == pytest.approx(counted(digits.train_images[held], digits.train_labels[held]))
    assert outcome.test_accuracy == pytest.approx(counted(digits.test_images, digits.test_labels))
    assert (trained.accuracy("alpha"), trained.test_accuracy("alpha")) == (outcome.accuracy, outcome.test_accuracy)
    assert outcome.accuracy != outcome.test_accuracy


def test_without_a_split_the_one_accuracy_is_on_test_images(digits: Dataset) -> None:
    alone, split_off = federation(digits, 0.0), federation(digits, 0.1)
    assert alone.test_accuracy("alpha") is None
    assert alone.accuracy("alpha") == split_off.test_accuracy("alpha")  # of the same untrained model
    assert set(alone.state()) == {"alpha/model", "alpha/accuracy", "beta/model", "beta/accuracy"}


def test_each_evaluation_looks_at_so_many_images_at_most(digits: Dataset) -> None:
    """Of the test images, at those that it looks at without a split; of the validation images, at all if there are
    fewer."""
    few, alone = federation(digits, eval_samples=40), federation(digits, 0.0, eval_samples=40)
    learner = few._learners["alpha"]
    assert (len(learner.loop.labels), len(learner.test.labels)) == (40, 40)
    assert few.test_accuracy("alpha") == alone.accuracy("alpha")
    many = federation(digits, eval_samples=200)._learners["alpha"]
    assert (len(many.loop.labels), len(many.test.labels)) == (143, 200)


def test_a_federation_goes_on_from_its_state(digits: Dataset) -> None:
    first, second = federation(digits), federation(digits)
    jobs = [TrainingJob(name, client, 80, 0.5) for name in SERVICES for client in (1, 2)]
    first.train_round(1, jobs)
    second.restore(first.state())
    assert [second.test_accuracy(name) for name in SERVICES] == [first.test_accuracy(name) for name in SERVICES]
    one, other = (
        [(it.accuracy, it.test_accuracy) for it in each.train_round(2, jobs).values()] for each in (first, second)
    )
    assert one == other
