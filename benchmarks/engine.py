"""The speed of federated training: flmarket against plain PyTorch, and against other frameworks if installed.

    python benchmarks/engine.py --repeat 7

Each of the parts (``--only``) is described where it begins; ``make bench-peers`` installs the other frameworks.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import plain
import torch
from measure import Report, Timing, numpy_alone, take_turns

from fl.arithmetic.streams import stream
from fl.arrays import Float32Array
from fl.data.dataset import Shape
from fl.data.registry import DatasetError, load
from fl.training import fused
from fl.training.federation import RealFederation, _Learner
from fl.training.jobs import TrainingJob
from fl.training.regime import Kernel, Regime
from fl.training.tasks import ClientData, Task, Trainer, visiting_order
from fl.training.trainers import Engine, FusedTrainer
from flmarket.core.cores import usable_cores
from learning.episode import play_round
from scenarios.build import Shelf, build
from scenarios.loader import load as load_scenario

CLIENTS, CHOSEN, SAMPLES, TESTED, BATCH, RATE = 20, 5, 250, 2000, 32, 0.05
"""The reference workload: each round 5 of 20 clients train on 250 images, and 2,000 test images are evaluated."""

TRAIN_FLOP, EVALUATE_FLOP = 1.517e6, 0.563e6
"""Dense arithmetic of the paper's network for one image. Training is forward, and backward to weights and inputs."""

KERNELS: tuple[Kernel, ...] = ("reference", "auto")

PEERS_FOLDER = Path(os.environ.get("FLMARKET_PEERS", Path(__file__).parents[1] / ".venv-peers"))
PEERS = ("flower", "fedlab", "pfl")
PEER_SECONDS = 600.0
"""How long a peer may take for one repetition."""


@dataclass(frozen=True)
class Choice:
    """The choices of the command line."""

    repeat: int
    rounds: int


def workload_task() -> Task:
    """Return the reference workload's data and regime. The data set is embedded, so that nothing is downloaded."""
    regime = Regime(batch_size=BATCH, learning_rate=RATE)
    return Task("service", load("strokes"), regime, TESTED)


def workload_jobs() -> Iterator[tuple[int, list[TrainingJob]]]:
    """Yield the rounds. In every four rounds, each client trains once."""
    for round_ in count(1):
        first = CHOSEN * round_ % CLIENTS
        yield round_, [TrainingJob("service", first + i, SAMPLES, 0.0) for i in range(CHOSEN)]


def flmarket_rounds(
    task: Task, rounds: int, *, workers: int, kernel: Kernel
) -> tuple[RealFederation, Callable[[], None]]:
    """Return a federation, and a call that plays some rounds of the workload on it."""
    federation = RealFederation([task], seed=0, workers=workers, kernel=kernel)
    jobs = workload_jobs()

    def play() -> None:
        torch.set_num_threads(1)
        for _ in range(rounds):
            federation.train_round(*next(jobs))

    return federation, play


def plain_rounds(clients: list[plain.Client], test: plain.Client, rounds: int, threads: int) -> Callable[[], None]:
    """Return a call that plays some rounds of the workload in the plain loop."""
    torch.manual_seed(0)
    model = plain.LeNet()
    chosen = count()

    def play() -> None:
        torch.set_num_threads(threads)
        for _ in range(rounds):
            first = CHOSEN * next(chosen) % CLIENTS
            plain.federated_round(model, clients[first : first + CHOSEN], test, epochs=1, batch_size=BATCH, rate=RATE)

    return play


def plain_data(task: Task) -> tuple[list[plain.Client], plain.Client]:
    """Return the same work as tensors: 20 clients' images and the test images."""
    dataset = task.dataset

    def tensors(images: np.ndarray, labels: np.ndarray) -> plain.Client:
        x = torch.from_numpy(images.astype(np.float32)) * dataset.scale + dataset.offset
        return x, torch.from_numpy(labels.astype(np.int64))

    order = stream(0, "benchmark").permutation(len(dataset.train_labels)).reshape(-1)[: CLIENTS * SAMPLES]
    parts = order.reshape(CLIENTS, SAMPLES)
    clients = [tensors(dataset.train_images[part], dataset.train_labels[part]) for part in parts]
    return clients, tensors(dataset.test_images[:TESTED], dataset.test_labels[:TESTED])


def bench_round(report: Report, choice: Choice) -> None:
    """Play the reference workload: target 8 times the plain loop on two cores."""
    task, cores = workload_task(), usable_cores()
    clients, test = plain_data(task)
    with ExitStack() as stack:
        contestants = {
            f"plain PyTorch, {threads} thread{'s' * (threads > 1)}": plain_rounds(clients, test, choice.rounds, threads)
            for threads in (1, 2)
        }
        for kernel in KERNELS:
            federation, play = flmarket_rounds(task, choice.rounds, workers=cores, kernel=kernel)
            stack.callback(federation.close)
            contestants[f"flmarket, {federation.kernels['service']}, {cores} workers"] = play
        timings = take_turns(contestants, choice.repeat)
    best = min(timing.median for name, timing in timings.items() if name.startswith("plain"))
    report.table(
        f"Reference workload: {CHOSEN} of {CLIENTS} clients x {SAMPLES} images, batch {BATCH}, {TESTED} test images",
        [
            {
                "engine": name,
                "rounds/s": choice.rounds / timing.median,
                "times plain": best / timing.median,
                "CPU ms/round": 1e3 * timing.cpu / choice.rounds,
                "spread": timing.spread,
            }
            for name, timing in timings.items()
        ],
    )


def bench_draws(report: Report, choice: Choice) -> None:
    """Draw the images and orders of the reference workload's clients, and play its rounds, with and without NumPy."""
    task = workload_task()
    learner = _Learner(task, 0, "auto", "cpu")
    federations = [RealFederation([task], seed=0, workers=0, kernel="auto") for _ in range(2)]
    jobs = [workload_jobs() for _ in range(4)]

    def draw(which: int) -> None:
        for _ in range(choice.rounds):
            round_, trained = next(jobs[which])
            for job in trained:
                learner.client_data(0, round_, job)

    def play(which: int) -> None:
        for _ in range(choice.rounds):
            federations[which].train_round(*next(jobs[2 + which]))

    def alone(call: Callable[[int], None]) -> None:
        with numpy_alone():
            call(1)

    contestants: dict[str, Callable[[], object]] = {}
    for name, call in (("draws", draw), ("a whole round", play)):
        contestants |= {f"{name}, compiled": partial(call, 0), f"{name}, NumPy": partial(alone, call)}
    timings = take_turns(contestants, 3 * choice.repeat)
    report.table(
        f"Drawing the images and orders of {CHOSEN} clients x {SAMPLES} images, one thread",
        [
            {"work": name, "CPU ms/round": 1e3 * timing.cpu / choice.rounds, "spread": timing.spread}
            for name, timing in timings.items()
        ],
    )


def paper_rounds(shelf: Shelf, workers: int, kernel: Kernel) -> tuple[Callable[[], None], Callable[[], None]]:
    """Return a call that plays the paper's next round, including policies and market, and a call that closes it.

    Every service's target is out of reach, so that all three train in every round.
    """
    never = [f"services.{name}.target_accuracy=1.0" for name in ("mnist", "fashion-mnist", "emnist")]
    scenario = load_scenario("paper", ["rounds=1000000", f"training.kernel={kernel}", *never])
    setup = build(scenario, 0, shelf, workers=workers)

    def play() -> None:
        torch.set_num_threads(1)
        play_round(setup.market, setup.policies)

    return play, setup.federation.close


def bench_paper(report: Report, choice: Choice) -> None:
    """Play the paper's round (three services, full test sets) with one and two workers: target 1.8 times."""
    shelf = Shelf()
    try:
        for name in ("mnist", "fashion-mnist", "emnist-digits"):
            shelf.get(name)
    except DatasetError as error:
        print(f"paper: skipped, {error}")
        return
    with ExitStack() as stack:
        contestants = {}
        for workers, kernel in ((1, "auto"), (2, "auto"), (2, "reference")):
            play, close = paper_rounds(shelf, workers, kernel)
            stack.callback(close)
            contestants[f"{kernel}, {workers} worker{'s' * (workers > 1)}"] = play
        # Rounds differ in how much work they are, but each contestant plays the same ones.
        timings = take_turns(contestants, 3 * choice.repeat)
    one = timings["auto, 1 worker"]
    report.table(
        "The paper's round: 3 services, full test sets (60,000 images)",
        [
            {
                "engine": name,
                "rounds/s": 1 / timing.median,
                "times one worker": _paired(one, timing),
                "best of each": one.best / timing.best,
                "CPU ms/round": 1e3 * timing.cpu,
                "spread": timing.spread,
            }
            for name, timing in timings.items()
        ],
    )


def bench_evaluate(report: Report, choice: Choice) -> None:
    """Evaluate alone, one thread: target 7 times ``model(x)`` with max_pool2d."""
    task = workload_task()
    dataset = task.dataset
    _, (images, labels) = plain_data(task)
    model = plain.LeNet()
    pixels, classes = dataset.test_images[:TESTED], dataset.test_labels[:TESTED]
    contestants: dict[str, Callable[[], object]] = {}

    def plainly(batch: int) -> Callable[[], object]:
        def call() -> float:
            torch.set_num_threads(1)
            return plain.evaluate(model, images, labels, batch)

        return call

    for batch in (250, 1000, 2000):
        contestants[f"model(x), batch {batch}"] = plainly(batch)
    for kernel in KERNELS:
        engine = Engine(dataset, task.regime, kernel)
        trainer, start = engine.trainer(), engine.initial_parameters(0, "benchmark")
        contestants[f"flmarket, {engine.kernel}"] = lambda t=trainer, p=start: t.correct(p, pixels, classes)  # type: ignore[misc]
    timings = take_turns(contestants, choice.repeat)
    best = min(timing.median for name, timing in timings.items() if name.startswith("model"))
    report.table(
        f"Evaluation of {TESTED} images, one thread",
        [
            {
                "engine": name,
                "us/image": 1e6 * timing.median / TESTED,
                "times model(x)": best / timing.median,
                "CPU us/image": 1e6 * timing.cpu / TESTED,
                "spread": timing.spread,
            }
            for name, timing in timings.items()
        ],
    )


_worker: list[tuple[Trainer, Float32Array, list[ClientData], Regime]] = []
"""A worker process's own trainer and images, set when it starts."""


def _equip(kernel: Kernel) -> None:
    torch.set_num_threads(1)
    dataset, regime = load("strokes"), Regime(batch_size=10, learning_rate=0.01)
    engine = Engine(dataset, regime, kernel)
    order = visiting_order(SAMPLES, 1, stream(0, "order"))
    parts = [slice(first, first + SAMPLES) for first in range(0, 8 * SAMPLES, SAMPLES)]
    clients = [ClientData(dataset.train_images[part], dataset.train_labels[part], order) for part in parts]
    _worker[:] = [(engine.trainer(), engine.initial_parameters(0, "benchmark"), clients, regime)]


def _train_in_process(task: tuple[Float32Array, int]) -> tuple[Float32Array, float]:
    parameters, client = task
    trainer, _, clients, regime = _worker[0]
    return trainer.train(parameters, *clients[client], regime)


def bench_pools(report: Report, choice: Choice) -> None:
    """Train 8 clients at batch 10 in two threads and in two processes, which send the parameters back and forth."""
    rows = []
    for kernel in KERNELS:
        timings = _time_pools(kernel, 2 * choice.repeat)
        one = timings["1 thread"]
        for name, timing in timings.items():
            rows.append(
                {
                    "workers": f"{kernel}, {name}",
                    "us/image": 1e6 * timing.median / 8 / SAMPLES,
                    "times 1 thread": _paired(one, timing),
                    "best of each": one.best / timing.best,
                    "spread": timing.spread,
                }
            )
    report.table("Threads or processes: 8 clients x 250 images, batch 10", rows)


def _time_pools(kernel: Kernel, repeat: int) -> dict[str, Timing]:
    _equip(kernel)
    own, start, clients, regime = _worker[0]
    other = Engine(load("strokes"), regime, kernel).trainer()

    def train(trainer: Trainer, share: list[ClientData]) -> None:
        for data in share:
            trainer.train(start, *data, regime)

    with (
        ThreadPoolExecutor(2) as threads,
        ProcessPoolExecutor(2, get_context("spawn"), _equip, (kernel,)) as processes,
    ):
        contestants: dict[str, Callable[[], object]] = {
            "1 thread": lambda: train(own, clients),
            "2 threads": lambda: list(threads.map(train, (own, other), (clients[::2], clients[1::2]))),
            "2 processes": lambda: list(processes.map(_train_in_process, [(start, c) for c in range(8)])),
        }
        return take_turns(contestants, repeat)


def bench_limit(report: Report, choice: Choice) -> None:
    """Compare one thread's arithmetic with a large matrix product's."""
    task = workload_task()
    dataset = task.dataset
    images, labels = dataset.train_images[:SAMPLES].copy(), dataset.train_labels[:SAMPLES].copy()
    torch.set_num_threads(1)
    side = 1024
    a, b = torch.randn(side, side), torch.randn(side, side)
    contestants: dict[str, Callable[[], object]] = {"matrix product": lambda: [a @ b for _ in range(4)]}
    work = {"matrix product": 4 * 2.0 * side**3}
    for batch in (10, 32):
        regime = Regime(batch_size=batch, learning_rate=0.01)
        engine = Engine(dataset, regime, "auto")
        start = engine.initial_parameters(0, "benchmark")
        order = visiting_order(SAMPLES, 4, stream(0, "order"))
        contestants[f"train, batch {batch}"] = partial(engine.trainer().train, start, images, labels, order, regime)
        work[f"train, batch {batch}"] = TRAIN_FLOP * order.size
    engine = Engine(dataset, task.regime, "auto")
    start, trainer = engine.initial_parameters(0, "benchmark"), engine.trainer()
    contestants["evaluate"] = lambda: trainer.correct(start, dataset.test_images, dataset.test_labels)
    work["evaluate"] = EVALUATE_FLOP * len(dataset.test_labels)
    timings = take_turns(contestants, choice.repeat)
    peak = work["matrix product"] / timings["matrix product"].cpu
    per_image = {"train, batch 10": TRAIN_FLOP, "train, batch 32": TRAIN_FLOP, "evaluate": EVALUATE_FLOP}
    report.table(
        f"Arithmetic of one thread, per CPU second ({fused.kernel_name()}; dense FLOP of the model)",
        [
            {
                "work": name,
                "GFLOP/s": work[name] / timing.cpu / 1e9,
                "of the product": work[name] / timing.cpu / peak,
                "us/image": 1e6 * timing.cpu * per_image[name] / work[name] if name in per_image else None,
                "spread": timing.spread,
            }
            for name, timing in timings.items()
        ],
    )


def bench_colour(report: Report, choice: Choice) -> None:
    """Train and evaluate on 3 x 32 x 32, one thread, against a plain loop: target 6 times. The images are noise."""
    random = stream(0, "benchmark")
    images = random.integers(0, 256, (2 * SAMPLES, 3, 32, 32), dtype=np.uint8)
    labels = random.integers(0, 10, 2 * SAMPLES, dtype=np.uint8)
    client = torch.from_numpy(images).float() / 255, torch.from_numpy(labels).long()
    model = plain.LeNet(3, 32)
    architecture = fused.Architecture("cnn", 10, shape=Shape(3, 32, 32))
    start = torch.nn.utils.parameters_to_vector(model.parameters()).detach().numpy().copy()
    trainer = FusedTrainer(architecture, 1 / 255, 0.0)
    rows = []
    for batch in (10, 32):
        regime = Regime(batch_size=batch, learning_rate=0.01)
        order = visiting_order(len(labels), 1, random)
        timings = _one_thread(
            {
                "plain PyTorch": partial(plain.train_client, model, client, epochs=1, batch_size=batch, rate=0.01),
                "flmarket": partial(trainer.train, start, images, labels, order, regime),
            },
            choice.repeat,
        )
        rows += _against_plain(f"train, batch {batch}", timings, len(labels))
    timings = _one_thread(
        {
            "plain PyTorch": partial(plain.evaluate, model, *client, 250),
            "flmarket": partial(trainer.correct, start, images, labels),
        },
        choice.repeat,
    )
    rows += _against_plain("evaluate", timings, len(labels))
    report.table(f"Images of 3 x 32 x 32, one thread ({fused.kernel_name()})", rows)


def _one_thread(contestants: dict[str, Callable[[], object]], repeat: int) -> dict[str, Timing]:
    torch.set_num_threads(1)
    return take_turns(contestants, repeat)


def _against_plain(work: str, timings: dict[str, Timing], images: int) -> list[dict[str, object]]:
    return [
        {
            "work": f"{work}: {name}",
            "us/image": 1e6 * timing.median / images,
            "times plain": timings["plain PyTorch"].median / timing.median,
            "CPU us/image": 1e6 * timing.cpu / images,
            "spread": timing.spread,
        }
        for name, timing in timings.items()
    ]


def bench_memory(report: Report, choice: Choice) -> None:
    """Run five rounds of the scenario ``paper`` in a process of its own: target at most 1.5 GB at the peak."""
    # The peak comes early: data sets are loaded and evaluated before the first round.
    program = (
        "import resource, sys, tempfile\nfrom pathlib import Path\n"
        "from scenarios.running.planning import plan\nfrom scenarios.build import Shelf\n"
        "from scenarios.loader import load\nfrom scenarios.running.runner import execute\n"
        "shelf = Shelf()\n"
        "with tempfile.TemporaryDirectory() as out:\n"
        "    [run] = plan([load('paper', ['rounds=5'])], [], [0], Path(out), shelf)\n"
        "    execute(run, shelf, workers=int(sys.argv[1]))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    rows = []
    for workers in (1, 2):
        command = [sys.executable, "-c", program, str(workers)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"memory: skipped, {done.stderr.strip().splitlines()[-1]}")
            return
        rows.append({"workers": workers, "peak GB": int(done.stdout) * 1024 / 1e9})
    report.table("Peak memory of the scenario `paper`", rows)


def bench_peers(report: Report, choice: Choice) -> None:
    """Play the reference workload in other frameworks, each in the virtual environment where it is installed."""
    task = workload_task()
    clients, (test_images, test_labels) = plain_data(task)
    cores = usable_cores()
    found = _installed_peers()
    with TemporaryDirectory() as folder, ExitStack() as stack:
        data = Path(folder) / "workload.npz"
        np.savez(
            data,
            images=np.stack([images.numpy() for images, _ in clients]),
            labels=np.stack([labels.numpy() for _, labels in clients]),
            test_images=test_images.numpy(),
            test_labels=test_labels.numpy(),
        )
        federation, ours = flmarket_rounds(task, choice.rounds, workers=cores, kernel="auto")
        stack.callback(federation.close)
        ours_name = f"flmarket, {federation.kernels['service']}"
        plains = {"plain PyTorch": plain_rounds(clients, (test_images, test_labels), choice.rounds, 1)}
        rates: dict[str, list[float]] = {}
        for _ in range(choice.repeat):
            for name, call in ({ours_name: ours} | plains).items():
                rates.setdefault(name, []).append(choice.rounds / take_turns({name: call}, 1)[name].median)
            for name, python in list(found.items()):
                rate = _peer_rate(name, python, choice.rounds, data)
                if rate is None:
                    del found[name]
                else:
                    rates.setdefault(name, []).append(rate)
    medians = {name: float(np.median(each)) for name, each in rates.items()}
    report.table(
        "The reference workload in other frameworks (start-up not counted)",
        [
            {"engine": name, "rounds/s": median, "flmarket is faster": medians[ours_name] / median}
            for name, median in medians.items()
        ],
    )


def _installed_peers() -> dict[str, Path]:
    """Return each installed peer's Python, and report those that are missing."""
    found = {}
    for name in PEERS:
        python = PEERS_FOLDER / name / "bin" / "python"
        if python.exists():
            found[name] = python
        else:
            print(f"{name}: skipped, there is no {python} (`make bench-peers`, FLMARKET_PEERS)")
    return found


def _peer_rate(name: str, python: Path, rounds: int, data: Path) -> float | None:
    """Return how many rounds a peer plays in a second; None, and a line, if it fails."""
    command = [str(python), str(Path(__file__).parent / "peers" / f"{name}_peer.py"), str(rounds)]
    # One torch thread each: a second gains nothing on a network this small.
    environment = os.environ | {"FLMARKET_WORKLOAD": str(data), "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONPATH", None)
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=PEER_SECONDS, env=environment
        )
    except subprocess.TimeoutExpired:
        print(f"{name}: left out, it took longer than {PEER_SECONDS:.0f} s")
        return None
    if done.returncode:
        print(f"{name}: left out, it failed\n{done.stderr[-800:]}")
        return None
    rate: float = json.loads(done.stdout.splitlines()[-1])["rounds_per_second"]
    return rate


def _paired(one: Timing, other: Timing) -> float:
    """Return the median over repetitions of how much faster the second was; both played the same rounds."""
    return float(np.median(np.array(one.seconds) / np.array(other.seconds)))


PARTS = {
    "round": bench_round,
    "draws": bench_draws,
    "paper": bench_paper,
    "evaluate": bench_evaluate,
    "pools": bench_pools,
    "limit": bench_limit,
    "colour": bench_colour,
    "memory": bench_memory,
    "peers": bench_peers,
}


def main() -> None:
    """Run the parts that the command line selects."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=7, help="alternating repetitions (default 7)")
    parser.add_argument("--rounds", type=int, default=4, help="rounds in one repetition of the workload (default 4)")
    parser.add_argument("--only", choices=PARTS, nargs="+", default=list(PARTS), help="parts to run (default all)")
    parser.add_argument("--no-save", dest="save", action="store_false", help="write nothing to benchmarks/results/")
    arguments = parser.parse_args()
    report = Report("engine", save=arguments.save)
    for part in arguments.only:
        PARTS[part](report, Choice(arguments.repeat, arguments.rounds))
    report.close()


if __name__ == "__main__":
    main()
