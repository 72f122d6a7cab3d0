"""All clients of a round on a GPU, against the same module one client after another there, and against all CPU cores.

    python benchmarks/gpu.py --repeat 7

TF32 is off for all. The images are noise, as no accuracy is measured.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import models
import numpy as np
import plain
import torch
from measure import Report, take_turns

from fl.arithmetic.streams import stream
from fl.training.networks import build
from fl.training.regime import Regime
from fl.training.tasks import ClientData, visiting_order
from fl.training.trainers import Engine, KernelError, require_device
from flmarket.core.installation import usable_cores

COUNTS = (1, 5, 20, 100)
"""Clients of a round."""


def one_by_one(model: torch.nn.Module, clients: Sequence[plain.Client], finish: Callable[[], None]) -> None:
    """Train a module on each client, from the same parameters."""
    start = {key: value.clone() for key, value in model.state_dict().items()}
    for client in clients:
        model.load_state_dict(start)
        plain.train_client(model, client, epochs=1, batch_size=models.BATCH, rate=models.RATE)
    model.load_state_dict(start)
    finish()


def bench(report: Report, name: str, count: int, device: str, repeat: int) -> None:
    """Train the clients of one round."""
    dataset, size = models.noise(models.MODELS[name]), models.SAMPLES
    regime = Regime(model=name, batch_size=models.BATCH, learning_rate=models.RATE)
    order = visiting_order(size, 1, stream(0, "order"))
    parts = [np.arange(size) + size * (client % models.CLIENTS) for client in range(count)]
    clients = [ClientData(dataset.train_images[part], dataset.train_labels[part], order) for part in parts]
    engine = Engine(dataset, regime)
    start, batched = engine.initial_parameters(0, "benchmark"), engine.batched(device)

    def tensors(data: ClientData) -> plain.Client:
        pixels = torch.from_numpy(data[0].astype(np.float32)) * dataset.scale + dataset.offset
        return pixels.to(device), torch.from_numpy(data[1].astype(np.int64)).to(device)

    finish = torch.cuda.synchronize if torch.device(device).type == "cuda" else lambda: None
    module = build(name, models.LABELS, models.MODELS[name], 0, "benchmark").to(device)
    trainers = [engine.trainer() for _ in range(usable_cores())]

    def share(place: int) -> None:
        for data in clients[place :: len(trainers)]:
            trainers[place].train(start, *data, regime)

    with ThreadPoolExecutor(len(trainers)) as pool:
        contestants: dict[Any, Callable[[], Any]] = {
            "flmarket": partial(batched.train, start, clients, regime),
            "one by one": partial(one_by_one, module, [tensors(data) for data in clients], finish),
            "cores": lambda: list(pool.map(share, range(len(trainers)))),
        }
        timings = take_turns(contestants, repeat)
    ours = timings["flmarket"].seconds
    what = f"`{name}`, {count} clients on {device}"
    report.times(f"{what}, against one by one there", timings["one by one"].seconds, ours)
    report.times(f"{what}, against all CPU cores", timings["cores"].seconds, ours)
    report.figure(what, "ms", [1e3 * it for it in ours])


def main() -> None:
    """Measure the models and counts that the command line selects."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=7, help="alternating repetitions (default 7)")
    parser.add_argument("--only", choices=("cnn", "resnet8"), nargs="+", default=["cnn", "resnet8"], help="models")
    parser.add_argument("--clients", type=int, nargs="+", default=COUNTS, help="clients of a round")
    parser.add_argument("--device", default="cuda", help="torch device (default cuda)")
    parser.add_argument("--no-save", dest="save", action="store_false", help="write nothing to benchmarks/results/")
    arguments = parser.parse_args()
    try:
        require_device(arguments.device)
    except KernelError as error:
        sys.exit(str(error))
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    report = Report(save=arguments.save)
    for report.part in arguments.only:
        for count in arguments.clients:
            bench(report, report.part, count, arguments.device, arguments.repeat)
    report.close()


if __name__ == "__main__":
    main()
