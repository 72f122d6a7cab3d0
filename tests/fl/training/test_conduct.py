"""Clients that do other than honest work: by hand what each does to labels and updates, and real training with them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fl.arithmetic.draws import draw_key
from fl.arrays import FloatArray
from fl.data.registry import load
from fl.training.aggregator import Aggregator, Updates
from fl.training.conduct import sent_model, used_labels
from fl.training.federation import RealFederation
from fl.training.jobs import Conduct, TrainingJob
from fl.training.regime import Regime
from fl.training.tasks import Task

KEY = draw_key(0, "conduct", "alpha")
OLD = np.array([1, -2, 0, 0.5], dtype=np.float32)
TRAINED = OLD + np.array([3, 0, 4, 0], dtype=np.float32)  # an update of norm 5


def update(conduct: Conduct, round_: int = 1, client: int = 0) -> list[float]:
    return (sent_model(conduct, OLD, TRAINED, KEY, round_, client) - OLD).tolist()


def test_what_a_client_sends_is_worked_out_by_hand() -> None:
    assert update(Conduct()) == [3, 0, 4, 0]
    assert update(Conduct(update="old")) == [0, 0, 0, 0]
    assert update(Conduct(update_scale=-2)) == [-6, 0, -8, 0]
    assert update(Conduct(clip=2.5)) == [1.5, 0, 2, 0]
    assert update(Conduct(clip=6)) == [3, 0, 4, 0]  # it is shorter already
    assert update(Conduct(clip=2.5, update_scale=2)) == [3, 0, 4, 0]  # an attacker scales what is clipped
    assert sent_model(Conduct(epochs=1, label_noise=0.3, label_flip=1), OLD, TRAINED, KEY, 1, 0) is TRAINED


def test_random_updates_are_as_long_as_the_trained_one_and_differ_by_round_and_client() -> None:
    updates = [update(Conduct(update="random"), *at) for at in ((1, 0), (2, 0), (1, 1), (1, 0))]
    assert np.linalg.norm(updates, axis=1) == pytest.approx(5, rel=1e-6)
    assert updates[0] == updates[3]
    assert len({tuple(each) for each in updates}) == 3
    assert sent_model(Conduct(update="random"), OLD, OLD, KEY, 1, 0).tolist() == OLD.tolist()


def test_noise_is_normal_with_its_standard_deviation_and_is_added_to_what_is_clipped() -> None:
    old = np.zeros(20_000, dtype=np.float32)
    sent = sent_model(Conduct(clip=0.01, noise=0.5), old, old + 1, KEY, 1, 0)
    assert sent.mean() == pytest.approx(0, abs=4 * 0.5 / 20_000**0.5)
    assert sent.std() == pytest.approx(0.5, rel=4 / 40_000**0.5)
    other = sent_model(Conduct(clip=0.01, noise=0.5), old, old + 1, KEY, 2, 0)
    assert abs(np.corrcoef(sent, other)[0, 1]) < 4 / 20_000**0.5


def test_so_many_labels_are_wrong_each_other_one_equally_often_and_an_image_keeps_its_own() -> None:
    images, labels = np.arange(20_000), np.full(20_000, 2, dtype=np.uint8)
    used = used_labels(Conduct(label_noise=0.4), labels, 5, KEY, 3, images)
    shares = np.bincount(used, minlength=5) / 20_000
    assert shares == pytest.approx([0.1, 0.1, 0.6, 0.1, 0.1], abs=4 * (0.24 / 20_000) ** 0.5)
    some = np.array([700, 3, 19_999])
    assert used_labels(Conduct(label_noise=0.4), labels[some], 5, KEY, 3, some).tolist() == used[some].tolist()
    other = used_labels(Conduct(label_noise=0.4), labels, 5, KEY, 4, images)
    assert ((other != 2) != (used != 2)).mean() == pytest.approx(0.48, abs=0.02)  # another client has others wrong


@given(st.integers(2, 12), st.floats(0, 1), st.integers(0, 1_000))
def test_labels_stay_labels_and_a_share_of_one_leaves_none_right(count: int, share: float, client: int) -> None:
    images = np.arange(3 * count)
    labels = (images % count).astype(np.uint8)
    used = used_labels(Conduct(label_noise=share), labels, count, KEY, client, images)
    assert used.dtype == np.uint8
    assert used.max() < count
    assert (used_labels(Conduct(label_noise=1.0), labels, count, KEY, client, images) != labels).all()
    flipped = used_labels(Conduct(label_flip=1), labels, count, KEY, client, images)
    assert flipped.tolist() == [count - 1 - label for label in labels.tolist()]


def test_of_two_labels_a_wrong_one_that_is_flipped_is_right_again() -> None:
    labels = np.array([0, 1, 1, 0], dtype=np.uint8)
    used = used_labels(Conduct(label_noise=1.0, label_flip=1.0), labels, 2, KEY, 0, np.arange(4))
    assert used.tolist() == labels.tolist()
    many = np.zeros(20_000, dtype=np.uint8)
    used = used_labels(Conduct(label_noise=0.5, label_flip=0.5), many, 2, KEY, 0, np.arange(20_000))
    assert used.mean() == pytest.approx(0.5, abs=4 * (0.25 / 20_000) ** 0.5)  # one has nothing to do with the other


REGIME = Regime(model="logistic", batch_size=10, learning_rate=0.05, local_epochs=3)


def trained(
    *conducts: Conduct | None, workers: int = 0, regime: Regime = REGIME, device: str = "cpu"
) -> RealFederation:
    """Return a federation after two rounds of clients that do as they are told."""
    federation = RealFederation([Task("alpha", load("digits"), regime)], 0, workers=workers, device=device)
    jobs = [TrainingJob("alpha", client, 40, 0.4, conduct=conduct) for client, conduct in enumerate(conducts)]
    for round_ in (1, 2):
        federation.train_round(round_, jobs)
    federation.close()
    return federation


def model(*conducts: Conduct | None, **options: object) -> np.ndarray:
    return trained(*conducts, **options).state()["alpha/model"]


ALL = (Conduct(epochs=1), Conduct(label_noise=0.5), Conduct(update="random"), Conduct(clip=1, noise=0.01), None)


def test_whatever_clients_do_models_have_the_same_bytes_with_any_number_of_workers() -> None:
    assert model(*ALL).tobytes() == model(*ALL, workers=2).tobytes()


def test_conduct_that_departs_in_nothing_changes_no_byte() -> None:
    assert model(Conduct(), Conduct(epochs=3)).tobytes() == model(None, None).tobytes()


def test_who_trains_fewer_epochs_trains_the_first_of_those_that_it_would_have_trained() -> None:
    one_epoch = Regime(model="logistic", batch_size=10, learning_rate=0.05, local_epochs=1)
    assert model(Conduct(epochs=1)).tobytes() == model(None, regime=one_epoch).tobytes()


def test_free_riders_alone_learn_nothing_and_flipped_labels_the_wrong_thing() -> None:
    honest, flipped = trained(None, None).accuracy("alpha"), trained(*[Conduct(label_flip=1)] * 2).accuracy("alpha")
    assert honest > 0.3 > 0.1 > flipped  # ten digits: a tenth by chance
    begun = RealFederation([Task("alpha", load("digits"), REGIME)], 0, workers=0)
    assert model(*[Conduct(update="old")] * 2).tobytes() == begun.state()["alpha/model"].tobytes()


class Noting(Aggregator):
    """Takes the first model, and notes what noise was said to be in each."""

    noise: list[float]

    def aggregate(self, updates: Updates) -> FloatArray:
        self.noise = updates.noise.tolist()
        return updates.models[0].astype(np.float64)


def test_an_aggregator_sees_how_much_noise_is_in_each_update() -> None:
    rule = Noting()
    task = Task("alpha", load("digits"), REGIME, aggregator=rule)
    federation = RealFederation([task], 0, workers=0)
    conducts = (None, Conduct(clip=1, noise=0.25))
    federation.train_round(1, [TrainingJob("alpha", c, 40, 0.4, conduct=it) for c, it in enumerate(conducts)])
    assert rule.noise == [0.0, 0.25]


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
def test_clients_that_train_together_do_the_same() -> None:
    """``cpu:0`` stands for an accelerator: torch trains on it as on one."""
    np.testing.assert_allclose(model(*ALL, device="cpu:0"), model(*ALL), atol=1e-3)
