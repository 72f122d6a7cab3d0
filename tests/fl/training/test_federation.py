"""Real federated training on tiny images, end to end."""

import pickle
import tracemalloc
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from fl.arithmetic.draws import draw_key
from fl.arithmetic.streams import stream
from fl.data.dataset import Shape
from fl.data.emd import draw_images, label_counts
from fl.training import federation as federations
from fl.training.aggregators.fedavg import fedavg
from fl.training.federation import RealFederation
from fl.training.jobs import Diverged, Federation, TrainingJob
from fl.training.local import ReferenceTrainer
from fl.training.models import model
from fl.training.networks import build
from fl.training.regime import Regime
from fl.training.tasks import ClientData, ModelFailed, Task, visiting_order
from flmarket.core.errors import RunError
from support.emd import emd as emd_of

LABELS = 3
SHAPE = Shape(1, 28, 28)
REGIME = Regime(model="mlp", batch_size=10, learning_rate=0.05)


def bands(images: int, purpose: str) -> tuple[np.ndarray, np.ndarray]:
    """Noisy images with a bright band: at the top for label 0, in the middle for 1, at the bottom for 2."""
    rng = stream(0, purpose)
    labels = rng.integers(LABELS, size=images).astype(np.uint8)
    pixels = rng.integers(160, size=(images, *SHAPE))
    for image, label in enumerate(labels):
        pixels[image, :, 9 * label : 9 * label + 9] += 60
    pixels = pixels.astype(np.uint8)
    for array in (pixels, labels):
        array.setflags(write=False)  # as data sets are
    return pixels, labels


@pytest.fixture(scope="module")
def dataset() -> Any:
    """As much of a data set as training asks for."""
    train_images, train_labels = bands(600, "train")
    test_images, test_labels = bands(1200, "test")  # more than one chunk of evaluation
    return SimpleNamespace(
        info=SimpleNamespace(name="bands", labels=LABELS, shape=SHAPE, standardise=True),
        train_images=train_images,
        train_labels=train_labels,
        test_images=test_images,
        test_labels=test_labels,
        by_label=[np.flatnonzero(train_labels == label) for label in range(LABELS)],
        scale=1 / 128,
        offset=-1.0,
    )


@pytest.fixture(scope="module", params=["reference", "auto"])
def federation_of(request: pytest.FixtureRequest, dataset: Any):
    """``federation_of("alpha", "beta", seed=..., workers=..., regime=..., tested=...)``, with both kernels."""

    def make(
        *services: str, seed: int = 0, workers: int = 0, regime: Regime = REGIME, tested: int | None = None
    ) -> RealFederation:
        tasks = [Task(service, dataset, regime, tested) for service in services]
        return RealFederation(tasks, seed, workers=workers, kernel=request.param)

    return make


def job(service: str, client: int, size: int = 30, emd: float = 0.4) -> TrainingJob:
    return TrainingJob(service, client, size, emd)


JOBS = [job("alpha", 0), job("beta", 0, 60), job("alpha", 4, 90, 1.0), job("beta", 2), job("alpha", 1, 60, 0.0)]


def history(federation: RealFederation, jobs: list[TrainingJob], rounds: int = 3) -> list[Any]:
    """Accuracies and each client's loss, to the last bit; from the second round on, these show all that went before."""
    seen = []
    for round_ in range(1, rounds + 1):
        outcomes = federation.train_round(round_, jobs)
        for service in sorted(outcomes):
            clients = [j.client for j in jobs if j.service == service]
            losses = dict(zip(clients, outcomes[service].losses.tolist(), strict=True))
            seen.append((round_, service, outcomes[service].accuracy, sorted(losses.items())))
    federation.close()
    return seen


@pytest.fixture(scope="module")
def usual(federation_of) -> list[Any]:
    """The history of two services, trained in the calling thread."""
    return history(federation_of("alpha", "beta"), JOBS)


def test_accuracy_rises(federation_of) -> None:
    federation = federation_of("alpha")
    before = federation.accuracy("alpha")
    for round_ in range(1, 9):
        outcome = federation.train_round(round_, [job("alpha", client, 60) for client in range(4)])["alpha"]
    assert before < 0.6  # three labels: about a third by chance
    assert outcome.accuracy > 0.9
    assert federation.accuracy("alpha") == outcome.accuracy
    assert (outcome.losses < 0.8).all()  # ln 3 = 1.1 by chance


def test_an_update_weighs_what_its_client_says_it_has(federation_of) -> None:
    """Clients train on what they hold; the server knows no other size than the one they report."""
    told = [job("alpha", 0, 30)._replace(reported=90), job("alpha", 1, 60)._replace(reported=30)]
    found, parts = federation_of("alpha"), []
    found.train_round(1, told)
    for one in told:
        alone = federation_of("alpha")
        alone.train_round(1, [one._replace(reported=None)])
        parts.append(alone.state()["alpha/model"])
    assert (found.state()["alpha/model"] == fedavg(parts, [90, 30])).all()


def test_the_number_of_workers_changes_no_bit(federation_of, usual: list[Any]) -> None:
    for workers in (1, 2):
        assert history(federation_of("alpha", "beta", workers=workers), JOBS) == usual
    assert history(federation_of("alpha", "beta", seed=1), JOBS, rounds=1) != usual[:2]


def test_the_order_of_the_jobs_changes_no_bit(federation_of, usual: list[Any]) -> None:
    assert history(federation_of("alpha", "beta"), JOBS[::-1]) == usual
    assert history(federation_of("beta", "alpha"), JOBS[2:] + JOBS[:2]) == usual


def test_other_services_change_nothing_for_one(federation_of, usual: list[Any]) -> None:
    alone = history(federation_of("alpha"), [j for j in JOBS if j.service == "alpha"])
    assert [row for row in usual if row[1] == "alpha"] == alone


def test_a_service_without_jobs_keeps_its_model(federation_of) -> None:
    federation = federation_of("alpha", "beta")
    before = federation.accuracy("beta")
    assert list(federation.train_round(1, [job("alpha", 0)])) == ["alpha"]
    assert federation.accuracy("beta") == before
    assert federation.train_round(2, []) == {}
    # In round 3 beta trains from where it has been all along.
    late = federation.train_round(3, [job("beta", 0)])["beta"]
    assert late.losses.tolist() == federation_of("beta").train_round(3, [job("beta", 0)])["beta"].losses.tolist()


def test_federated_rounds_are_local_trainings_averaged_by_data_size(federation_of, dataset) -> None:
    """Three rounds of two clients with 30 and 90 images, put together by hand."""
    federation = federation_of("alpha", seed=5)
    trainer = ReferenceTrainer(build("mlp", LABELS, SHAPE, 5, "model", "alpha"), SHAPE, dataset.scale, dataset.offset)
    model = trainer.parameters
    for round_ in (1, 2, 3):
        local, losses = {}, []
        for client, size, emd in ((2, 30, 0.4), (0, 90, 1.0)):
            key = draw_key(5, "images", "alpha")
            counts = label_counts(size, emd, LABELS, key, round_, client)
            chosen = draw_images(counts, dataset.by_label, key, round_, client)
            order = visiting_order(size, 1, stream(5, "local", round_, client, "alpha"))
            images, labels = dataset.train_images[chosen], dataset.train_labels[chosen]
            local[client], loss = trainer.train(model, images, labels, order, REGIME)
            losses.append(loss)
        model = (0.25 * local[2].astype(float) + 0.75 * local[0].astype(float)).astype(np.float32)
        outcome = federation.train_round(round_, [job("alpha", 2, 30, 0.4), job("alpha", 0, 90, 1.0)])["alpha"]
        assert outcome.losses == pytest.approx(losses, rel=1e-4)
    hits = trainer.correct(model, dataset.test_images, dataset.test_labels)
    assert outcome.accuracy == pytest.approx(hits / 1200, abs=2 / 1200)  # kernels may differ in a last bit


def test_divergence_names_service_client_and_round(federation_of) -> None:
    federation = federation_of("alpha", workers=2, regime=replace(REGIME, learning_rate=1e30))
    with pytest.raises(Diverged) as caught:
        federation.train_round(4, [job("alpha", 3, 60), job("alpha", 7)])
    federation.close()
    assert (caught.value.service, caught.value.round, caught.value.client) == ("alpha", 4, 3)


def test_evaluation_on_some_of_the_test_images(federation_of) -> None:
    correct = federation_of("alpha", tested=7).accuracy("alpha") * 7
    assert correct == pytest.approx(round(correct), abs=1e-9)
    all_of_them = federation_of("alpha").accuracy("alpha")
    assert federation_of("alpha", tested=10**6).accuracy("alpha") == all_of_them


def test_models_that_wait_to_be_averaged_change_no_bit_whether_they_are_many_or_few(
    federation_of, usual: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(federations, "MOST_HELD", 0)
    assert history(federation_of("alpha", "beta", workers=2), JOBS) == usual


def test_a_round_does_not_hold_a_model_for_each_client(federation_of) -> None:
    federation = federation_of("alpha")
    jobs = [job("alpha", client, 10) for client in range(30)]
    federation.train_round(1, jobs)
    tracemalloc.start()
    federation.train_round(2, jobs)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * federation.state()["alpha/model"].nbytes


def noisy(labels: int) -> nn.Module:
    """Draws from torch in training, and from NumPy in evaluation, too."""

    class Noise(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * float(np.random.uniform(0.9, 1.1))  # noqa: NPY002

    return nn.Sequential(nn.Flatten(), nn.Linear(784, 20), nn.Dropout(0.5), nn.ReLU(), Noise(), nn.Linear(20, labels))


def test_what_a_model_draws_depends_on_seed_service_round_and_client_alone(federation_of) -> None:
    model("noisy")(noisy)
    regime = replace(REGIME, model="noisy")
    torch.manual_seed(1)
    before = torch.get_rng_state()
    alone = history(federation_of("alpha", "beta", regime=regime), JOBS)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)  # whatever else has drawn
    for workers in (1, 3):
        assert history(federation_of("alpha", "beta", regime=regime, workers=workers), JOBS[::-1]) == alone
    assert history(federation_of("alpha", "beta", regime=regime, seed=1), JOBS) != alone


def test_dropout_is_drawn_anew_for_each_client_and_round(federation_of, dataset) -> None:
    model("noisy")(noisy)
    engine = federation_of("alpha", regime=replace(REGIME, model="noisy"))._learners["alpha"].engine
    masks = []
    for purpose in ((1, 0, "alpha"), (1, 0, "alpha"), (1, 1, "alpha"), (2, 0, "alpha"), (1, 0, "beta")):
        with engine.drawing("training", 0, *purpose):
            masks.append(tuple(nn.functional.dropout(torch.ones(64)).tolist()))
    assert masks[0] == masks[1]
    assert len(set(masks)) == 4


def test_buffers_are_drawn_with_the_parameters_of_the_model(federation_of) -> None:
    """All trainers of a service have the same; other seeds have others."""

    class Features(nn.Module):
        def __init__(self, labels: int) -> None:
            super().__init__()
            self.last = nn.Linear(784, labels)
            self.register_buffer("start", self.last.weight.detach().clone())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.last(x.flatten(1)) - nn.functional.linear(x.flatten(1), self.start)

    model("features")(Features)
    federation = federation_of("alpha", regime=replace(REGIME, model="features"), seed=3)
    assert federation.accuracy("alpha") < 0.6  # all logits are the biases
    learner = federation._learners["alpha"]
    with learner.trainer() as trainer:
        assert np.array_equal(trainer.module.start.numpy().ravel(), learner.parameters[: 784 * LABELS])


def test_a_model_that_fails_in_training_is_named_with_service_client_and_round(federation_of) -> None:
    """Even where no line of its own does: torch raises it."""

    class Narrow(nn.Module):
        def __init__(self, labels: int) -> None:
            super().__init__()
            self.last = nn.Linear(784, labels)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.last(x.flatten(1)[: 9 if self.training else None])

    model("narrow")(Narrow)
    federation = federation_of("alpha", regime=replace(REGIME, model="narrow"))
    with pytest.raises(
        ModelFailed, match=r"^model 'narrow' of service 'alpha' failed to train client 3 in round 2: Val"
    ):
        federation.train_round(2, [job("alpha", 3)])


def test_no_global_generator_is_drawn_from(federation_of) -> None:
    before = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    federation_of("alpha").train_round(1, [job("alpha", 0)])
    assert torch.equal(torch.random.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()  # noqa: NPY002


def test_a_label_mix_that_lasts_is_the_same_in_every_round_but_its_images_are_not(federation_of) -> None:
    learner = federation_of("alpha")._learners["alpha"]

    def drawn(round_: int, mix: int | None) -> ClientData:
        return learner.client_data(0, round_, job("alpha", 4, 90, 1.0)._replace(mix=mix))

    def counts(data: ClientData) -> tuple[int, ...]:
        return tuple(np.bincount(data.labels, minlength=LABELS).tolist())

    lasting = [drawn(round_, 2) for round_ in range(2, 8)]
    assert len({counts(data) for data in lasting}) == 1
    assert len({data.pixels.tobytes() for data in lasting}) == len(lasting)
    assert len({counts(drawn(2, mix)) for mix in (None, *range(12))}) > 6  # each mix is a draw of its own
    assert any(counts(drawn(n, n)) != counts(drawn(n, None)) for n in range(1, 4))  # not that of the round's fresh data


def test_a_job_that_names_its_label_counts_gets_them_and_other_images_each_round(federation_of) -> None:
    learner = federation_of("alpha")._learners["alpha"]
    counts = (0, 50, *[0] * (LABELS - 3), 40)
    named = job("alpha", 4, 90, emd_of(counts))._replace(counts=counts)
    one, other = (learner.client_data(0, round_, named) for round_ in (1, 2))
    for data in (one, other):
        assert tuple(np.bincount(data.labels, minlength=LABELS).tolist()) == counts
    assert one.pixels.tobytes() != other.pixels.tobytes()


def floats(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


def test_models_are_weighted_by_data_size() -> None:
    # 100 images say (1, 0), 300 say (5, -4): (1 * 100 + 5 * 300) / 400 = 4, (0 - 4 * 300) / 400 = -3.
    merged = fedavg([floats(1, 0), floats(5, -4)], [100, 300])
    assert merged.tolist() == [4.0, -3.0]
    assert merged.dtype == np.float32


@given(st.lists(st.tuples(st.integers(0, 2**32), st.integers(1, 1000)), min_size=1, max_size=20))
def test_any_models_as_the_definition_says(clients: list[tuple[int, int]]) -> None:
    models = [np.random.default_rng(seed).normal(size=7).astype(np.float32) for seed, _ in clients]
    sizes = [size for _, size in clients]
    expected = np.average(np.array(models, dtype=np.float64), axis=0, weights=sizes)
    np.testing.assert_allclose(fedavg(models, sizes), expected, rtol=1e-6, atol=1e-7)


def test_one_client_is_taken_as_it_is_and_left_as_it_was() -> None:
    model = floats(0.1, -2.5)
    merged = fedavg([model], [7])
    assert merged.tolist() == model.tolist()
    merged[0] = 9
    assert model.tolist() == floats(0.1, -2.5).tolist()


def test_sums_are_taken_in_double_precision() -> None:
    # In single precision 1 + 1e-8 is 1, and the difference would be lost.
    assert fedavg([floats(1), floats(1e-8), floats(-1)], [1, 1, 1])[0] == pytest.approx(1e-8 / 3, rel=1e-6)


def test_a_model_that_diverged_spoils_the_mean_and_warns_of_nothing() -> None:
    merged = fedavg([floats(np.inf, 1), floats(-np.inf, 1)], [1, 1])
    assert np.isnan(merged[0])
    assert merged[1] == 1


@pytest.mark.parametrize(
    ("models", "sizes", "said"),
    [([], [], "hold data"), ([floats(1)], [1, 2], "longer"), ([floats(1)], [0], "hold data")],
)
def test_nonsense_is_refused(models, sizes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        fedavg(models, sizes)


@pytest.mark.parametrize(("client", "what"), [(7, "the loss of client 7"), (None, "the global model")])
def test_diverged_names_service_round_and_client_and_what_to_do(client: int | None, what: str) -> None:
    error = Diverged("mnist", 3, client)
    assert isinstance(error, RunError)
    assert str(error) == (
        f"service 'mnist': training diverged in round 3: {what} is not finite; lower learning_rate (or local_epochs, "
        "momentum) for its data set"
    )


def test_diverged_travels_between_processes() -> None:
    error = Diverged("mnist", 3, 7, changed=True)
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (copy.service, copy.round, copy.client) == ("mnist", 3, 7)
    assert str(copy) == str(error)


def test_a_trial_is_a_round_of_some_jobs_alone_and_leaves_no_trace(federation_of) -> None:
    federation = federation_of("alpha", "beta")
    federation.train_round(1, JOBS)
    before = {name: array.copy() for name, array in federation.state().items()}
    trial, retrained = federation.trial(2, JOBS), Federation.trial(federation, 2, JOBS)
    alpha = [it for it in JOBS if it.service == "alpha"]
    for some in (alpha, alpha[:1], alpha[:0:-1], [it for it in JOBS if it.service == "beta"]):
        alone = federation_of("alpha", "beta")
        alone.restore(before)
        assert trial(some) == retrained(some) == alone.train_round(2, some)[some[0].service].accuracy
    assert all((array == before[name]).all() for name, array in federation.state().items())
