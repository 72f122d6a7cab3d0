"""Aggregators: each by hand, what one wild update can do to them, and real training with them."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy._core import _multiarray_umath as umath
from torch.nn.functional import cross_entropy

from fl.arithmetic.ordered_sums import folded_sums
from fl.arithmetic.streams import stream
from fl.data.registry import load
from fl.training import fused
from fl.training.aggregator import (
    AGGREGATORS,
    Aggregator,
    AggregatorError,
    Updates,
    aggregate,
    checkpoint_arrays,
    outliers,
)
from fl.training.federation import RealFederation
from fl.training.jobs import Conduct, Diverged, TrainingJob
from fl.training.local import ReferenceTrainer
from fl.training.networks import build
from fl.training.proximal import train_near
from fl.training.regime import Regime
from fl.training.tasks import ClientData, Task, visiting_order
from fl.training.trainers import Engine
from flmarket.core.errors import InputError
from flmarket.core.plugin_errors import PluginFailed

REGIME = Regime(model="logistic", batch_size=10, learning_rate=0.05)
ROBUST: Mapping[str, dict[str, Any]] = {"median": {}, "trimmed-mean": {"share": 0.25}, "krum": {"share": 0.25}}


def floats(*rows: Sequence[float]) -> np.ndarray:
    return np.array(rows, dtype=np.float32)


def new_model(
    kind: str,
    models: np.ndarray,
    weights: Sequence[int] | None = None,
    old: Sequence[float] = (0, 0, 0),
    **options: Any,
) -> list[float]:
    updates = Updates(iter(models), weights or [1] * len(models), floats(*[old])[0])
    return aggregate(AGGREGATORS.create(kind, **options), updates, "round 1").tolist()


THREE = floats([1, 10, -3], [2, 40, -3], [6, 20, 5])


@pytest.mark.parametrize(
    ("kind", "options", "expected"),
    [
        # Weighted by 1, 2 and 1: (1 + 4 + 6) / 4, (10 + 80 + 20) / 4, (-3 - 6 + 5) / 4.
        ("fedavg", {}, [2.75, 27.5, -1]),
        ("fedprox", {"mu": 0.1}, [2.75, 27.5, -1]),
        ("median", {}, [2, 20, -3]),
        ("trimmed-mean", {"share": 0.34}, [2, 20, -3]),
        ("trimmed-mean", {"share": 0.3}, [3, np.float32(70 / 3), np.float32(-1 / 3)]),  # 0.9 clients: none is left out
        # Squared distances: 1 to 2 is 1 + 900, 1 to 3 is 25 + 100 + 64 = 189, 2 to 3 is 16 + 400 + 64 = 480. 1 and 3
        # are the nearest pair, and of the two, 3 is nearer to 2.
        ("krum", {}, [6, 20, 5]),
        ("krum", {"keep": 2}, [3.5, 15, 1]),
        ("krum", {"keep": 9}, [3, np.float32(70 / 3), np.float32(-1 / 3)]),
    ],
)
def test_three_updates_of_three_numbers_by_hand(kind: str, options: dict[str, Any], expected: list[float]) -> None:
    assert new_model(kind, THREE, [1, 2, 1], **options) == expected


def test_a_change_that_is_too_long_is_scaled_down_before_it_is_weighted() -> None:
    # From (1, 1, 1): (0, 3, 4) has the norm 5 and becomes (0, 1.5, 2); (0, 0, 2) has 2 and stays; weights 1/4 and 3/4.
    models = floats([1, 4, 5], [1, 1, 3])
    assert new_model("norm-clip", models, [10, 30], (1, 1, 1), norm=2.5) == [1, 1.375, 3]
    assert new_model("norm-clip", models, [10, 30], (1, 1, 1), norm=9) == [1, 1.75, 3.5]
    assert new_model("norm-clip", floats([1, 1, 1]), [3], (1, 1, 1), norm=0.1) == [1, 1, 1]


def test_krum_takes_one_of_those_that_agree() -> None:
    # Five numbers, one attacker (0.2 of 5): each is judged by its 2 nearest. Scores: 1 + 9, 1 + 4, 4 + 9, and so on.
    models = floats([0], [1], [3], [100], [101])
    assert new_model("krum", models, old=(0,)) == [1]
    assert new_model("krum", models, old=(0,), keep=3) == [np.float32(4 / 3)]


def test_krum_never_takes_more_models_than_honest_clients_have() -> None:
    """Of 5 clients one may be an attacker: asked for 9 models, it takes the mean of the best 4."""
    assert new_model("krum", floats([0], [1], [3], [4], [1000]), old=(0,), keep=9) == [2]


def test_a_share_of_clients_is_rounded_down_as_one_reads_it() -> None:
    assert [outliers(share, 100) for share in (0.29, 0.295, 0.3)] == [29, 29, 30]  # 0.29 * 100 is 28.999...


def test_a_share_below_a_half_leaves_someone() -> None:
    assert outliers(0.4999999999, 2) == 0
    assert new_model("trimmed-mean", floats([1], [4]), old=(0,), share=0.4999999999) == [2.5]


def test_of_models_that_are_equally_near_krum_takes_the_same_one_in_any_order() -> None:
    corners = floats([0, 0], [0, 1], [1, 0], [1, 1])
    for order in permutations(corners):
        assert new_model("krum", np.array(order), old=(0, 0)) == [0, 0]
        assert new_model("krum", np.array(order), old=(0, 0), keep=2) == [0, 0.5]


def test_zeros_of_both_signs_are_one_number() -> None:
    assert not np.signbit(new_model("median", floats([-0.0], [-0.0], [0.0]), old=(0,)))


def test_krum_guards_against_no_more_attackers_than_the_paper_allows() -> None:
    """Of 4 clients, 0.49 would be 1 attacker; n >= 2 f + 3 allows none, so that each is judged by its 2 nearest."""
    models = floats([0], [1], [3], [8])
    assert new_model("krum", models, old=(0,), share=0.49) == [1]  # 1 + 4; with f = 1, 0 and 1 would tie
    assert new_model("krum", models, old=(0,), share=0.49, keep=4) == [3]  # all four


@pytest.mark.parametrize("kind", ROBUST)
@pytest.mark.parametrize("models", [floats([1, -2, 0.5]), floats([1, -2, 0.5], [3, 4, 1.5])])
def test_of_one_or_two_updates_robust_rules_take_the_mean(kind: str, models: np.ndarray) -> None:
    assert new_model(kind, models, [5] * len(models), **ROBUST[kind]) == models.mean(0).tolist()


clients = st.integers(4, 12).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, 2**32), st.permutations(range(n))))


@given(clients)
def test_numbering_clients_otherwise_changes_nothing(drawn: tuple[int, int, list[int]]) -> None:
    count, seed, order = drawn
    models = np.random.default_rng(seed).normal(size=(count, 3)).astype(np.float32)
    weights = np.arange(1, count + 1)
    for kind, options in ROBUST.items():
        assert new_model(kind, models, **options) == new_model(kind, models[order], **options)
    for kind, options in (("fedavg", {}), ("norm-clip", {"norm": 1.0})):
        one, other = (new_model(kind, models[by], weights[by].tolist(), **options) for by in (range(count), order))
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)  # of sums in another order


@given(st.integers(5, 12), st.integers(0, 2**32), st.floats(-(2.0**100), 2.0**100))
def test_one_false_update_moves_robust_rules_no_further_than_honest_ones_lie(
    count: int, seed: int, wild: float
) -> None:
    """The model of Krum may be the false one, but is then as near to an honest one as honest ones are to each other."""
    models = np.random.default_rng(seed).normal(size=(count, 3)).astype(np.float32)
    honest = models[1:]
    models[0] = wild
    for kind in ("median", "trimmed-mean"):
        new = new_model(kind, models, **ROBUST[kind])
        assert (honest.min(0) <= new).all(), kind
        assert (new <= honest.max(0)).all(), kind
    apart = max(np.square(one - other).sum() for one in honest for other in honest)
    chosen = floats(new_model("krum", models, **ROBUST["krum"]))
    assert np.square(honest - chosen).sum(1).min() <= apart * (1 + 1e-6)
    clipped = new_model("norm-clip", models, norm=2.0)
    assert float(np.square(clipped).sum()) <= 2.0**2 * (1 + 1e-6)


def test_one_wild_update_takes_fedavg_with_it() -> None:
    assert new_model("fedavg", floats([1e6], [0], [0], [0]), old=(0,)) == [250_000]


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=300))
def test_folded_sums_are_sums(values: list[float]) -> None:
    assert folded_sums(np.array([values, values]))[1] == pytest.approx(sum(values), rel=1e-12)


def test_updates_and_the_old_model_cannot_be_written_to() -> None:
    updates = Updates(iter(THREE), [1, 2, 1], np.zeros(3, dtype=np.float32))
    assert (updates.models == THREE).all()
    for array in (updates.models, updates.weights, updates.old, next(updates.one_by_one())):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


def test_models_that_are_read_one_by_one_are_read_once() -> None:
    for again in (Updates.one_by_one, lambda updates: updates.models):
        updates = Updates(iter(THREE), [1, 2, 1], np.zeros(3, dtype=np.float32))
        next(updates.one_by_one())
        with pytest.raises(AggregatorError, match=r"^models are read one by one only once; use updates\.models$"):
            again(updates)
    updates = Updates(iter(THREE), [1, 2, 1], np.zeros(3, dtype=np.float32))
    assert (updates.models == THREE).all()
    assert [len(list(updates.one_by_one())) for _ in range(2)] == [3, 3]


class Answers(Aggregator):
    """Returns, and keeps, what it is given."""

    def __init__(self, answer: Any = (0.0,), state: Any = (), proximal: float = 0.0) -> None:
        self.answer, self.kept, self.proximal = answer, dict(state), proximal

    def aggregate(self, updates):
        return self.answer() if callable(self.answer) else self.answer

    def state(self):
        return self.kept


@pytest.mark.parametrize(
    ("answer", "error", "problem"),
    [
        ([1.0, 2.0], AggregatorError, r"must return floats of shape \(1,\), not float64 of shape \(2,\)"),
        (np.array([1]), AggregatorError, r"must return floats of shape \(1,\), not int64 of shape \(1,\)"),
        (None, AggregatorError, r"must return floats of shape \(1,\), not object of shape \(\)"),
        (lambda: {}["x"], PluginFailed, r"failed, service 'a', round 3: KeyError: 'x' \(.*test_aggregation.py:\d+"),
    ],
)
def test_an_aggregator_of_ones_own_that_answers_wrongly_is_named_with_its_line(
    answer: Any, error: type[Exception], problem: str
) -> None:
    updates = Updates([floats([1.0])[0]], [1], floats([0.0])[0])
    with pytest.raises(error, match=rf"aggregator Answers.aggregate\(\) \(.*test_aggregation.py:\d+\).*{problem}"):
        aggregate(Answers(answer), updates, "service 'a', round 3")


def test_an_aggregator_of_ones_own_keeps_arrays_of_numbers_and_pulls_by_a_number() -> None:
    with pytest.raises(AggregatorError, match=r"Answers.state\(\) .* must return arrays of numbers, by name"):
        checkpoint_arrays(Answers(state={"a": "text"}))
    with pytest.raises(InputError, match="aggregator Answers: proximal must be a finite number of at least 0, not -1"):
        RealFederation([Task("alpha", load("digits"), REGIME, aggregator=Answers(proximal=-1))], 0)


class Undefined(Aggregator):
    def aggregate(self, updates: Updates) -> np.ndarray:
        return updates.old * (np.nan if np.isfinite(updates.models).all() else 1)


class Halved(Aggregator):
    def aggregate(self, updates: Updates) -> np.ndarray:
        return next(updates.one_by_one()) / 2


def test_what_is_not_finite_is_blamed_on_the_rule_only_where_all_updates_were_finite() -> None:
    said = (
        r"aggregator Undefined.aggregate\(\) \(.*test_aggregation.py:\d+\), service 'alpha', round 2: returned numbers"
    )
    with pytest.raises(AggregatorError, match=f"^{said} that are not finite, though all updates are$"):
        federation(Undefined()).train_round(2, JOBS)
    wild = [JOBS[0]._replace(conduct=Conduct(update_scale=1e300)), *JOBS[1:]]
    with pytest.raises(Diverged, match="training diverged in round 2: the global model is not finite"):
        federation(Halved()).train_round(2, wild)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_proximal_term_is_what_plain_torch_makes_of_it(momentum: float) -> None:
    data, rng = load("digits"), stream(0, "proximal")
    shape, labels = data.info.shape, data.info.labels
    chosen = rng.integers(len(data.train_labels), size=23)
    client = ClientData(data.train_images[chosen], data.train_labels[chosen], visiting_order(23, 2, rng))
    regime = Regime(model="logistic", batch_size=5, learning_rate=0.05, momentum=momentum, local_epochs=2)

    module = build("logistic", labels, shape, 0)
    start = [parameter.detach().clone() for parameter in module.parameters()]
    optimiser = torch.optim.SGD(module.parameters(), lr=0.05, momentum=momentum)
    images, targets = torch.from_numpy(client.pixels * data.scale + data.offset).float(), torch.tensor(client.labels)
    for epoch in client.order:
        for batch in np.split(epoch, range(5, 23, 5)):
            optimiser.zero_grad()
            apart = sum(((now - then) ** 2).sum() for now, then in zip(module.parameters(), start, strict=True))
            (cross_entropy(module(images[batch]), targets[batch].long()) + 0.5 * 2.0 * apart).backward()
            optimiser.step()
    expected = torch.nn.utils.parameters_to_vector(module.parameters()).detach().numpy()

    begin = torch.nn.utils.parameters_to_vector(start).numpy()
    in_torch = ReferenceTrainer(build("logistic", labels, shape, 0), shape, data.scale, data.offset)
    for trainer in (in_torch, Engine(data, regime).trainer()):
        found, _ = train_near(trainer, begin, client, regime, 2.0)
        np.testing.assert_allclose(found, expected, atol=2e-6)
    free, _ = in_torch.train(begin, *client, regime)
    assert np.square(found - begin).sum() < 0.9 * np.square(free - begin).sum()


JOBS = [TrainingJob("alpha", client, size, 0.4) for client, size in enumerate([60, 30, 40, 50, 60])]


def federation(aggregator: Aggregator, workers: int = 0) -> RealFederation:
    return RealFederation([Task("alpha", load("digits"), REGIME, aggregator=aggregator)], 0, workers=workers)


@pytest.mark.parametrize("kind", [*ROBUST, "fedprox", "norm-clip"])
def test_models_are_really_trained_by_each_rule_alike_with_any_number_of_workers(kind: str) -> None:
    options = {**ROBUST, "norm-clip": {"norm": 2.0}}.get(kind, {})
    models = []
    for workers in (0, 2):
        trained = federation(AGGREGATORS.create(kind, **options), workers)
        accuracies = [trained.train_round(round_, JOBS)["alpha"].accuracy for round_ in (1, 2, 3)]
        assert accuracies[-1] > 0.5  # ten digits: a tenth by chance
        models.append(trained.state()["alpha/model"].tobytes())
        trained.close()
    assert models[0] == models[1]


SAME_BYTES = """
import sys; sys.path.insert(0, "tests/fl/training")
from test_aggregation import digest
print(digest())
"""


def digest() -> str:
    """Return the digest of the models that all rules make in two rounds, of clients of whom not all work honestly."""
    found = hashlib.sha256()
    kinds = [None, Conduct(update="random", update_scale=-2), Conduct(label_noise=0.3, clip=0.5, noise=0.01)]
    jobs = [job._replace(conduct=kinds[job.client % 3]) for job in JOBS]
    for kind in AGGREGATORS.builtin:
        trained = federation(AGGREGATORS.create(kind, **{"norm-clip": {"norm": 0.5}}.get(kind, {})))
        for round_ in (1, 2):
            trained.train_round(round_, jobs)
        found.update(trained.state()["alpha/model"].tobytes())
    return found.hexdigest()


@pytest.mark.slow
@pytest.mark.skipif("portable" not in str(fused.kernels()), reason="no compiled kernel: plain torch promises no bytes")
def test_all_rules_have_the_same_bytes_on_a_processor_without_extensions() -> None:
    features = " ".join(name for name in umath.__cpu_dispatch__ if umath.__cpu_features__[name])
    plain = os.environ | {"NPY_DISABLE_CPU_FEATURES": features, "FLMARKET_KERNEL": "portable"}
    printed = subprocess.run([sys.executable, "-c", SAME_BYTES], env=plain, capture_output=True, text=True, check=True)
    assert printed.stdout.strip() == digest()


def test_the_proximal_term_of_a_rule_holds_models_near_the_old_one() -> None:
    moved = []
    for mu in (0.0, 5.0):
        trained = federation(AGGREGATORS.create("fedprox", mu=mu))
        old = trained.state()["alpha/model"]
        trained.train_round(1, JOBS)
        moved.append(float(np.abs(trained.state()["alpha/model"] - old).sum()))
    assert 0 < moved[1] < 0.9 * moved[0]


class Momentum(Aggregator):
    """FedAvg with momentum on the server: it has to be remembered."""

    def __init__(self) -> None:
        self.velocity = np.zeros(1)

    def aggregate(self, updates):
        self.velocity = 0.9 * self.velocity + updates.models.mean(0) - updates.old
        return updates.old + self.velocity

    def state(self):
        return {"velocity": self.velocity}

    def restore(self, state):
        self.velocity = state["velocity"]


def test_an_aggregator_that_remembers_is_resumed() -> None:
    whole, resumed = federation(Momentum()), federation(Momentum())
    whole.train_round(1, JOBS)
    resumed.restore(whole.state())
    for trained in (whole, resumed):
        trained.train_round(2, JOBS)
    assert whole.state()["alpha/model"].tobytes() == resumed.state()["alpha/model"].tobytes()


def test_clients_train_and_have_losses_whether_the_rule_looks_at_their_models_or_not() -> None:
    size = federation(Momentum()).state()["alpha/model"].shape
    trained = federation(Answers(np.zeros(size)))
    losses = trained.train_round(1, JOBS)["alpha"].losses
    assert len(losses) == len(JOBS)
    assert (losses > 0).all()
    assert not trained.state()["alpha/model"].any()


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
def test_beside_the_kernel_rules_train_together_and_a_proximal_term_one_client_after_another() -> None:
    """``cpu:0`` stands for an accelerator: torch trains on it as on one."""
    kernels = {}
    for kind in ("median", "fedprox"):
        task = Task("alpha", load("digits"), REGIME, aggregator=AGGREGATORS.create(kind))
        beside, usual = RealFederation([task], 0, workers=0, device="cpu:0"), federation(AGGREGATORS.create(kind))
        kernels[kind] = beside.kernels["alpha"]
        found, expected = (it.train_round(1, JOBS) and it.state()["alpha/model"] for it in (beside, usual))
        np.testing.assert_allclose(found, expected, atol=1e-4)
    assert kernels == {"median": "batched", "fedprox": "reference on cpu:0"}
