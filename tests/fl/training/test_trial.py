"""Models of a user's own: what is tried before they are trained, and that every code trains the same model."""

import random
from collections.abc import Callable
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import prune

from fl.arithmetic.streams import stream
from fl.data.dataset import DatasetInfo, Shape
from fl.training import fused
from fl.training.models import model
from fl.training.networks import build
from fl.training.regime import Regime
from fl.training.tasks import ClientData, Traits, visiting_order
from fl.training.trainers import Engine, traits_of
from flmarket.core.plugins import PluginError

LABELS, SHAPE = 4, Shape(1, 6, 6)
KNOWN = DatasetInfo("drawn", "drawn", LABELS, SHAPE, 0, 0, 0, "plug-in", "none")
REGIME = Regime(model="own", batch_size=4, local_epochs=2, momentum=0.5, learning_rate=0.1)
Forward = Callable[[Any, Tensor], Tensor]


def layers(*own: Callable[[], nn.Module]) -> Callable[[int], nn.Module]:
    return lambda labels: nn.Sequential(nn.Flatten(), *[make() for make in own], nn.Linear(36, labels))


def written(forward: Forward, prepare: Callable[[Any], object] = lambda net: None) -> Callable[[int], nn.Module]:
    """Return a model with a forward of its own, on flat images."""

    class Net(nn.Module):
        def __init__(self, labels: int) -> None:
            super().__init__()
            self.inner, self.head = nn.Linear(36, 8), nn.Linear(8, labels)
            prepare(self)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(forward(self, x.flatten(1)))

    return Net


def touched(touch: Callable[[nn.Module], object]) -> Callable[[int], nn.Module]:
    """Return a network that the compiled kernel knows but for what is done to its first layer."""

    def make(labels: int) -> nn.Module:
        network = nn.Sequential(nn.Flatten(), nn.Linear(36, 8), nn.ReLU(), nn.Linear(8, labels))
        touch(network[1])
        return network

    return make


def traits(make: Callable[..., nn.Module], batch_size: int = 10) -> Traits:
    model("own")(make)
    return traits_of(Regime(model="own", batch_size=batch_size), KNOWN, "alpha")


def twice(net: Any, x: Tensor) -> Tensor:
    net.calls += 1
    return net.inner(x * net.calls)


def late(net: Any, x: Tensor) -> Tensor:
    net.own.calls[0] += net.training
    return net.inner(x) * (1 + net.own.calls[0] // 60)


def late_in_evaluation(net: Any, x: Tensor) -> Tensor:
    net.calls += not net.training
    return net.inner(x) * (1 + net.calls // 20)


def carried(net: Any, x: Tensor) -> Tensor:
    before = net.state if net.state is not None and len(net.state) == len(x) else torch.zeros(len(x), 8)
    net.state = (net.inner(x) + before).tanh().detach()
    return net.inner(x) + before


def stale(net: Any, x: Tensor) -> Tensor:
    return net.inner(x + net.kept.setdefault(x.shape, x.detach()))


def by_first_images(net: Any, x: Tensor) -> Tensor:
    if not net.done:
        net.inner.bias.data.copy_(-net.inner(x).detach().mean(0))
        net.done = True
    return net.inner(x)


class FirstMean(nn.Module):
    """Takes the mean of the first images for a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.mean, self.done = nn.Parameter(torch.ones(())), False

    def forward(self, x: Tensor) -> Tensor:
        if not self.done:
            self.mean.data.copy_(x.detach().mean())
            self.done = True
        return x - self.mean


class FirstScale(nn.Module):
    """Divides by the deviation of the first images."""

    def __init__(self) -> None:
        super().__init__()
        self.scale: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        self.scale = x.detach().std() if self.scale is None else self.scale
        return x / self.scale


def tabled(net: Any, x: Tensor) -> Tensor:
    net.last = net.inner(x + net.kept.setdefault(x.shape[1:], torch.linspace(0, 1, 36)))
    return net.last


def noted(net: Any, x: Tensor) -> Tensor:
    setattr(net, "penalty" if net.training else "features", x.mean())
    return net.inner(x)


def drawn_once(net: Any, x: Tensor) -> Tensor:
    net.table = torch.randn(36) if net.table is None else net.table
    return net.inner(x + net.table)


def drawn_once_unseen(labels: int) -> nn.Module:
    table = cache(partial(torch.randn, 36))
    return written(lambda net, x: net.inner(x + table()))(labels)


def test_what_a_model_keeps_may_not_depend_on_earlier_calls() -> None:
    assert traits(written(tabled, lambda net: setattr(net, "kept", {}))) == Traits(None)


def test_what_a_model_notes_in_training_or_in_evaluation_alone_is_allowed() -> None:
    assert traits(written(noted)) == Traits(None)


def test_parameters_that_are_not_contiguous_are_trained() -> None:
    assert traits(touched(lambda it: setattr(it, "weight", nn.Parameter(torch.ones(36, 8).t())))) == Traits((8,))


@pytest.mark.filterwarnings("ignore:.*weight_norm:FutureWarning")
def test_layers_that_write_their_weight_anew_in_each_call_are_allowed() -> None:
    assert traits(layers(lambda: nn.utils.weight_norm(nn.Linear(36, 36)))) == Traits(None)
    assert traits(layers(lambda: prune.l1_unstructured(nn.Linear(36, 36), "weight", 0.5))) == Traits(None)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (layers(lambda: nn.BatchNorm1d(36)), r"changes buffers in training \(1\.running_mean, 1\.running_var, "),
        (
            lambda labels: nn.Sequential(nn.Flatten(), nn.utils.parametrizations.spectral_norm(nn.Linear(36, labels))),
            "changes buffers in training .* weight_norm for spectral_norm",
        ),
        (layers(lambda: nn.BatchNorm1d(36, track_running_stats=False)), r"beside it \(BatchNorm1d '1'\)"),
        (written(lambda net, x: net.inner(x - x.mean(0))), r"beside it \(Net\)"),
        (written(lambda net, x: net.inner(x / x.max())), r"beside it \(Net\)"),
        (written(lambda net, x: net.inner(x - x[0])), r"beside it \(Net\)"),
        (written(lambda net, x: net.inner(x - x.roll(1, 0))), r"beside it \(Net\)"),
        (written(lambda net, x: net.inner(x.sort(0).values)), r"beside it \(Net\)"),
        (written(lambda net, x: net.inner(x + x.flip(0))), "by its place among others"),
        (written(lambda net, x: net.inner(x + torch.arange(len(x))[:, None])), "by its place among others"),
        (written(lambda net, x: net.inner(x / len(x))), "by their number"),
        (
            lambda labels: nn.Sequential(nn.Conv2d(1, 2, 3), FirstScale(), nn.Flatten(), nn.Linear(32, labels)),
            "remembers `1.scale` of earlier batches",
        ),
        (
            written(lambda net, x: net.inner(x + torch.tensor(np.random.default_rng().normal(size=36)).float())),
            "remembers something of earlier batches, or draws from a generator of its own",
        ),
        (
            written(
                lambda net, x: net.inner(x + torch.rand(36, generator=net.own)),
                lambda net: setattr(net, "own", torch.Generator().manual_seed(1)),
            ),
            "remembers `own` of earlier batches, or draws from a generator of its own",
        ),
        (written(twice, lambda net: setattr(net, "calls", 0)), "remembers `calls` of earlier batches"),
        (written(late, lambda net: setattr(net, "own", SimpleNamespace(calls=[0]))), "remembers `own` of"),
        (written(late_in_evaluation, lambda net: setattr(net, "calls", 0)), "remembers `calls` of earlier batches"),
        (written(carried, lambda net: setattr(net, "state", None)), "remembers `state` of earlier batches"),
        (written(drawn_once, lambda net: setattr(net, "table", None)), "remembers `table` of earlier batches"),
        (drawn_once_unseen, "remembers something of earlier batches, or draws"),
        (written(stale, lambda net: setattr(net, "kept", {})), "remembers `kept` of earlier batches"),
        (written(by_first_images, lambda net: setattr(net, "done", False)), "remembers `done` of earlier batches"),
        (
            lambda labels: nn.Sequential(nn.Conv2d(1, 2, 3), FirstMean(), nn.Flatten(), nn.Linear(32, labels)),
            "remembers `1.done` of earlier batches",
        ),
        (
            touched(lambda it: it.bias.data.copy_(torch.from_numpy(np.random.default_rng().normal(size=8)))),
            "begins with other parameters each time it is made",
        ),
        (lambda labels: layers()(labels).requires_grad_(requires_grad=False), "has only frozen parameters"),
    ],
)  # fmt: skip
def test_what_could_not_be_repeated_is_refused_by_the_names_of_model_service_and_module(
    make: Callable[..., nn.Module], problem: str
) -> None:
    with pytest.raises(PluginError, match=rf"^model 'own' of service 'alpha', for 4 labels and .* 6: .*{problem}"):
        traits(make)


def test_a_model_is_tried_on_batches_of_one_image_where_it_will_be_trained_on_them() -> None:
    single = written(lambda net, x: net.inner(x).squeeze())
    assert traits(single) == Traits(None)
    with pytest.raises(PluginError, match="fails to train: "):
        traits(single, batch_size=1)


@pytest.mark.parametrize(
    ("make", "draws"),
    [
        (layers(nn.Dropout), {"training"}),
        (layers(lambda: nn.Dropout(0.0)), set()),
        (layers(nn.RReLU), {"training"}),
        (written(lambda net, x: functional.dropout(net.inner(x), 0.5)), {"training", "evaluation"}),
        (written(lambda net, x: net.inner(x + torch.randn_like(x) * net.training)), {"training", "evaluation"}),
        (written(lambda net, x: net.inner(x.flip(1) if net.training and random.random() < 0.5 else x)), {"training"}),  # noqa: S311
        (written(lambda net, x: net.inner(x * float(np.random.rand()))), {"training", "evaluation"}),  # noqa: NPY002
    ],
)  # fmt: skip
def test_random_numbers_in_forward_are_noticed_where_they_are_drawn(
    make: Callable[..., nn.Module], draws: set[str]
) -> None:
    assert traits(make).draws == draws


def test_a_trial_leaves_generators_and_threads_as_they_were() -> None:
    torch.set_num_threads(2)
    before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # noqa: NPY002
    traits(layers(nn.Dropout))
    assert before == (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())  # noqa: NPY002
    assert torch.get_num_threads() == 2


# Drawn models. Each entry: whether the model is refused for it, and how it is made part of one.
def hook_gradient(layer: nn.Module) -> None:
    layer.weight.register_hook(lambda gradient: gradient.clamp(-1e-3, 1e-3))


def hook_step(layer: nn.Module) -> None:
    def scale(parameter: Tensor) -> None:
        parameter.grad.mul_(0.1)

    layer.bias.register_post_accumulate_grad_hook(scale)


def shadow(layer: nn.Module) -> None:
    layer.forward = lambda x: functional.linear(x * 0.1, layer.weight, layer.bias)


def unnorm(layer: nn.Module) -> None:
    nn.utils.parametrizations.weight_norm(layer)
    nn.utils.parametrize.remove_parametrizations(layer, "weight")  # its weight now stands behind its bias


TOUCHES: list[Callable[[nn.Module], object]] = [
    lambda layer: layer.register_forward_pre_hook(lambda _, x: (x[0] * 0.1,)),
    lambda layer: layer.register_forward_hook(lambda _, x, y: y.tanh()),
    lambda layer: layer.register_full_backward_pre_hook(lambda _, gradient: (gradient[0] * 0.1,)),
    hook_gradient,
    hook_step,
    shadow,
    unnorm,
    lambda layer: layer.requires_grad_(requires_grad=False),
    lambda layer: layer.weight.requires_grad_(requires_grad=False),
]


class Table(nn.Module):
    """Adds a constant table."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("table", torch.randn(width))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table


class Noise(nn.Module):
    """Noise in training alone."""

    def forward(self, x: Tensor) -> Tensor:
        return x + 0.1 * torch.randn_like(x) if self.training else x


class Centred(nn.Module):
    """A statistic of the batch in training alone: padding must not change it."""

    def forward(self, x: Tensor) -> Tensor:
        return x - x.mean(0) if self.training else x


PARTS: list[Callable[[int], nn.Module]] = [
    nn.LayerNorm, lambda width: nn.GroupNorm(1, width), Table, lambda width: nn.Dropout(0.3),
    lambda width: nn.Dropout(0.0), lambda width: nn.RReLU(), lambda width: Noise(), lambda width: Centred(),
    lambda width: nn.Tanh(), lambda width: nn.LazyLinear(width),
]  # fmt: skip
REFUSED: list[Callable[[int], nn.Module]] = [
    nn.BatchNorm1d,
    lambda width: nn.BatchNorm1d(width, track_running_stats=False),
]


def drawn(seed: int) -> tuple[Callable[[int], nn.Module], bool]:
    """Return a model, and whether it must be refused."""
    rng = stream(seed, "model")
    widths = [int(it) for it in rng.integers(3, 9, size=rng.integers(0, 3))]
    part, odd = int(rng.integers(2 * len(PARTS))), bool(rng.random() < 0.15)
    places, lazy, touch = rng.integers(0, 100, size=3), rng.random() < 0.3, int(rng.integers(2 * len(TOUCHES)))

    def make(labels: int) -> nn.Module:
        stack: list[nn.Module] = [nn.Flatten()]
        for inputs, outputs in zip([36, *widths], [*widths, labels], strict=True):
            stack += [nn.LazyLinear(outputs) if lazy else nn.Linear(inputs, outputs), nn.ReLU()]
        linear = stack[1::2]
        for chosen, kinds in ((part, PARTS), (int(places[0]) % len(REFUSED) if odd else 99, REFUSED)):
            if chosen < len(kinds):
                before = int(places[1]) % len(linear)
                stack.insert(stack.index(linear[before]), kinds[chosen]([36, *widths][before]))
        if touch < (3 if lazy else len(TOUCHES)):  # the parameters of lazy layers cannot be touched yet
            TOUCHES[touch](linear[int(places[2]) % len(linear)])
        return nn.Sequential(*stack[:-1])

    return make, odd or not any(parameter.requires_grad for parameter in make(LABELS).parameters())


def by_hand(start: np.ndarray, client: ClientData, engine: Engine) -> np.ndarray:
    """Train the module itself, as in any tutorial."""
    module = build("own", LABELS, SHAPE, 0)
    nn.utils.vector_to_parameters(torch.tensor(start), module.parameters())
    optimiser = torch.optim.SGD(module.parameters(), lr=REGIME.learning_rate, momentum=REGIME.momentum)
    images, targets = torch.tensor(client.pixels / 128 - 1.0, dtype=torch.float32), torch.tensor(client.labels).long()
    with engine.drawing("training", 0, 1):
        for epoch in client.order.tolist():
            for first in range(0, len(epoch), REGIME.batch_size):
                batch = epoch[first : first + REGIME.batch_size]
                optimiser.zero_grad()
                nn.functional.cross_entropy(module(images[batch]), targets[batch]).backward()
                optimiser.step()
    return nn.utils.parameters_to_vector(module.parameters()).detach().numpy()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Full backward hook:UserWarning")
@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
@pytest.mark.parametrize(
    "seeds", [range(30), pytest.param(range(30, 230), marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_drawn_models_are_trained_alike_by_every_code_or_refused_by_name(seeds: range) -> None:
    """Hooks, buffers, norms, dropout, frozen and lazy layers: compiled, stacked and plain."""
    dataset: Any = SimpleNamespace(info=KNOWN, scale=1 / 128, offset=-1.0)
    seen = dict.fromkeys(("refused", "compiled", "stacked", "drawing", "plain"), 0)
    for seed in seeds:
        make, refused = drawn(seed)
        model("own")(make)
        engine = Engine(dataset, REGIME)
        if refused:
            with pytest.raises(PluginError, match=r"^model 'own' .*(running_mean|\(BatchNorm1d '|only frozen)"):
                engine.traits  # noqa: B018
            seen["refused"] += 1
            continue
        clients = []
        for size in (11, 6):
            rng = stream(seed, size)
            pixels, labels = rng.integers(256, size=(size, *SHAPE)), rng.integers(LABELS, size=size)
            clients.append(ClientData(pixels.astype(np.uint8), labels.astype(np.uint8), visiting_order(size, 2, rng)))
        start = engine.initial_parameters(0)
        expected = [by_hand(start, client, engine) for client in clients]
        trainer = engine.trainer()
        for client, wanted in zip(clients, expected, strict=True):
            with engine.drawing("training", 0, 1):
                found, _ = trainer.train(start, *client, REGIME)
            np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-5, err_msg=f"seed {seed}")
        if (together := engine.batched("cpu")) is not None:
            for (found, _), wanted in zip(together.train(start, clients, REGIME), expected, strict=True):
                np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-5, err_msg=f"seed {seed}")
        seen["compiled" if engine.kernel == "fused" else "plain"] += 1
        seen["stacked"] += together is not None
        seen["drawing"] += bool(engine.traits.draws)
    if not fused.available():
        del seen["compiled"]
    assert min(seen.values()) >= len(seeds) / 30, seen
