"""A round of federated training of any model, against the same modules in plain PyTorch, a process for each core.

    python benchmarks/models.py --repeat 7

The reference is what nothing but arithmetic costs: one process a core, each with one thread and its share of the
clients, in the better of two layouts of memory; then it evaluates its share of the test images. Averaging and sending
are left out. Both have the environment of flmarket's workers, so that memory is kept from one batch to the next. The
images are noise, as no accuracy is measured. Memory is that of the processes that train, after a round, shared pages
once.
"""

import argparse
import multiprocessing
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import contest
import numpy as np
import plain
import torch
from measure import Report, take_turns
from torch import Tensor, nn

import flmarket
from fl.arithmetic.streams import stream
from fl.data.dataset import Dataset, DatasetInfo, Shape
from fl.training.federation import RealFederation
from fl.training.jobs import TrainingJob
from fl.training.networks import build
from fl.training.regime import Regime
from fl.training.tasks import Task
from flmarket.core.installation import usable_cores
from scenarios.running.processes import ENVIRONMENT

SAMPLES, TESTED, BATCH, RATE, LABELS = 160, 500, 32, 0.05, 10
CLIENTS = 3 * usable_cores()
LAYOUTS = {"plain": torch.contiguous_format, "channels last": torch.channels_last}


@flmarket.model("mlp-200")
def mlp(labels: int, shape: Shape) -> nn.Module:
    """One hidden layer of 200."""
    inputs = shape.channels * shape.height * shape.width
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, 200), nn.ReLU(), nn.Linear(200, labels))


@flmarket.model("cnn-5x5")
def cnn_5x5(labels: int, shape: Shape) -> nn.Module:
    """The CNN of McMahan et al.: 32 and 64 maps of 5 x 5, then 512."""
    return _cnn(5, 512, labels, shape)


@flmarket.model("cnn-3x3")
def cnn_3x3(labels: int, shape: Shape) -> nn.Module:
    """The CNN that is usual for FEMNIST: 32 and 64 maps of 3 x 3, then 128."""
    return _cnn(3, 128, labels, shape)


def _cnn(side: int, width: int, labels: int, shape: Shape) -> nn.Module:
    features = 64 * (shape.height // 4) * (shape.width // 4)
    pad = side // 2
    return nn.Sequential(
        nn.Conv2d(shape.channels, 32, side, padding=pad), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, side, padding=pad), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(features, width), nn.ReLU(), nn.Linear(width, labels),
    )  # fmt: skip


class Rows(nn.Module):
    """An LSTM that reads an image row by row."""

    def __init__(self, labels: int, shape: Shape) -> None:
        super().__init__()
        self.lstm = nn.LSTM(shape.channels * shape.width, 128, batch_first=True)
        self.head = nn.Linear(128, labels)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits [n, labels] for images [n, channels, height, width]."""
        return self.head(self.lstm(x.transpose(1, 2).flatten(2))[0][:, -1])


@flmarket.model("lstm")
def lstm(labels: int, shape: Shape) -> nn.Module:
    """One layer of 128."""
    return Rows(labels, shape)


@flmarket.model("tiny")
def tiny(labels: int, shape: Shape) -> nn.Module:
    """The example of docs/extending/model.md."""
    inputs = shape.channels * (shape.height // 2) * (shape.width // 2)
    return nn.Sequential(nn.AvgPool2d(2), nn.Flatten(), nn.Linear(inputs, labels))


GREY, COLOUR = Shape(1, 28, 28), Shape(3, 32, 32)
MODELS: Mapping[str, Shape] = {
    "cnn": GREY, "logistic": GREY, "mlp-200": GREY, "resnet8": COLOUR, "cnn-5x5": COLOUR, "cnn-3x3": GREY, "lstm": GREY,
    "tiny": GREY,
}  # fmt: skip

TRAIN, EVALUATE, MEMORY, END = "train", "evaluate", "memory", ""
"""What a process is told to do."""


def noise(shape: Shape, labels: int = LABELS, sizes: Sequence[int] = (CLIENTS * SAMPLES, TESTED)) -> Dataset:
    """Return a data set of noise; the sizes are those of its training and its test split."""
    random = stream(0, "benchmark")
    arrays = [
        array
        for size in sizes
        for array in (
            random.integers(0, 256, (size, *shape), dtype=np.uint8),
            (np.arange(size) % labels).astype(np.uint8),
        )
    ]
    info = DatasetInfo("noise", "noise", labels, shape, *sizes, 0, "plug-in", "none")
    return Dataset.of(info, tuple(arrays), {}, {})  # type: ignore[arg-type]


def work(pipe: Connection, name: str, layout: torch.memory_format, share: int, of: int) -> None:
    """Train and evaluate in plain PyTorch as often as is asked for, in a process of its own."""
    torch.set_num_threads(1)
    dataset = noise(MODELS[name])
    model = build(name, LABELS, MODELS[name], 0, "benchmark").to(memory_format=layout)

    def tensors(images: np.ndarray, labels: np.ndarray) -> plain.Client:
        x = torch.from_numpy(images.astype(np.float32)) * dataset.scale + dataset.offset
        return x.contiguous(memory_format=layout), torch.from_numpy(labels.astype(np.int64))

    parts = np.arange(CLIENTS * SAMPLES).reshape(CLIENTS, SAMPLES)[share::of]
    clients = [tensors(dataset.train_images[part], dataset.train_labels[part]) for part in parts]
    test = tensors(dataset.test_images[share::of], dataset.test_labels[share::of])
    start = {key: value.clone() for key, value in model.state_dict().items()}
    while order := pipe.recv():
        if order == TRAIN:
            for client in clients:
                model.load_state_dict(start)
                plain.train_client(model, client, epochs=1, batch_size=BATCH, rate=RATE)
        elif order == EVALUATE:
            plain.evaluate(model, *test)
        pipe.send(contest.memory(os.getpid()) if order == MEMORY else 0.0)


def work_flmarket(pipe: Connection, name: str) -> None:
    """Play rounds in flmarket as often as is asked for, in a process of its own."""
    torch.set_num_threads(1)
    task = Task("service", noise(MODELS[name]), Regime(model=name, batch_size=BATCH, learning_rate=RATE), None)
    jobs = [TrainingJob("service", client, SAMPLES, 0.0) for client in range(CLIENTS)]
    federation = RealFederation([task], seed=0, workers=usable_cores())
    while order := pipe.recv():
        if order == TRAIN:  # which evaluates, too
            federation.train_round(1, jobs)
        pipe.send(contest.memory(os.getpid()) if order == MEMORY else 0.0)
    federation.close()


def processes(
    stack: ExitStack, target: Callable[..., None], arguments: Sequence[tuple[Any, ...]]
) -> Callable[[str], list[float]]:
    """Start a process for each list of arguments; return a call that has all of them do something."""
    context, pipes = multiprocessing.get_context("spawn"), []
    for each in arguments:
        own, other = context.Pipe()
        process = context.Process(target=target, args=(other, *each), daemon=True)
        process.start()
        stack.callback(process.join)
        stack.callback(own.send, END)
        pipes.append(own)

    def do(order: str) -> list[float]:
        for pipe in pipes:
            pipe.send(order)
        return [pipe.recv() for pipe in pipes]

    return do


def bench(report: Report, name: str, repeat: int) -> None:
    """Play rounds of one model."""
    cores = usable_cores()
    with ExitStack() as stack:
        told = {
            layout: processes(stack, work, [(name, memory, share, cores) for share in range(cores)])
            for layout, memory in LAYOUTS.items()
        }
        told["flmarket"] = processes(stack, work_flmarket, [(name,)])
        contestants = {who: partial(play, do) for who, do in told.items()}
        timings = take_turns(contestants, repeat)
        memory = {who: sum(do(MEMORY)) for who, do in told.items()}
    ours = timings.pop("flmarket")
    layout = min(timings, key=lambda it: timings[it].median)
    what = f"a round of `{name}`"
    report.times(f"{what}, against plain processes ({layout})", timings[layout].seconds, ours.seconds)
    report.figure(f"{what}, an image", "us", [1e6 * it / (CLIENTS * SAMPLES) for it in ours.seconds])
    report.figure(f"{what}, memory", "MB", [memory["flmarket"]])
    report.figure(f"{what}, memory of the plain processes", "MB", [memory[layout]])


def play(do: Callable[[str], list[float]]) -> None:
    """Play a round."""
    do(TRAIN)
    do(EVALUATE)


def main() -> None:
    """Measure the models that the command line selects."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=7, help="alternating repetitions (default 7)")
    parser.add_argument("--only", choices=MODELS, nargs="+", default=list(MODELS), help="models (default all)")
    parser.add_argument("--no-save", dest="save", action="store_false", help="write nothing to benchmarks/results/")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    os.environ |= ENVIRONMENT
    report = Report(save=arguments.save)
    for report.part in arguments.only:
        bench(report, report.part, arguments.repeat)
    report.close()


if __name__ == "__main__":
    sys.exit(main())
