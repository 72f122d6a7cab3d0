"""The speed of federated training: flmarket against plain PyTorch, and against other frameworks if installed.

    python benchmarks/engine.py --repeat 7

Each of the parts (``--only``) is described where it begins; ``make bench-peers`` installs the other frameworks.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import contest
import numpy as np
import plain
import torch
from measure import Report, Timing, take_turns
from peers.workload import WARM_UP, Job

from fl.arithmetic.streams import stream
from fl.data.dataset import Shape
from fl.data.registry import DatasetError, load
from fl.training import fused
from fl.training.federation import RealFederation
from fl.training.jobs import TrainingJob
from fl.training.regime import Kernel, Regime
from fl.training.tasks import Task, visiting_order
from fl.training.trainers import Engine, FusedTrainer
from flmarket.core.installation import usable_cores
from learning.play_round import play_round
from scenarios.build import Shelf, build
from scenarios.loader import load as load_scenario

CLIENTS, CHOSEN, SAMPLES, TESTED, BATCH, RATE = 20, 5, 250, 2000, 32, 0.05
"""The reference workload: each round 5 of 20 clients train on 250 images, and 2,000 test images are evaluated."""

TRAIN_FLOP, EVALUATE_FLOP = 1.517e6, 0.563e6
"""Dense arithmetic of the paper's network for one image. Training is forward, and backward to weights and inputs."""

KERNELS: tuple[Kernel, ...] = ("reference", "auto")


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


def plain_rounds(
    clients: list[plain.Client], test: plain.Client, rounds: int, threads: int, batch: int
) -> Callable[[], None]:
    """Return a call that plays some rounds of the workload in the plain loop."""
    torch.manual_seed(0)
    model = plain.LeNet()
    chosen = count()

    def play() -> None:
        torch.set_num_threads(threads)
        for _ in range(rounds):
            first = CHOSEN * next(chosen) % CLIENTS
            chosen_now = clients[first : first + CHOSEN]
            plain.federated_round(model, chosen_now, test, evaluated=batch, epochs=1, batch_size=BATCH, rate=RATE)

    return play


def client_images(task: Task) -> np.ndarray:
    """Return the indices of 20 clients' images, [20, 250]."""
    order = stream(0, "benchmark").permutation(len(task.dataset.train_labels)).reshape(-1)
    return order[: CLIENTS * SAMPLES].reshape(CLIENTS, SAMPLES)


def plain_data(task: Task) -> tuple[list[plain.Client], plain.Client]:
    """Return the same work as tensors: 20 clients' images and the test images."""
    dataset = task.dataset

    def tensors(images: np.ndarray, labels: np.ndarray) -> plain.Client:
        x = torch.from_numpy(images.astype(np.float32)) * dataset.scale + dataset.offset
        return x, torch.from_numpy(labels.astype(np.int64))

    clients = [tensors(dataset.train_images[part], dataset.train_labels[part]) for part in client_images(task)]
    return clients, tensors(dataset.test_images[:TESTED], dataset.test_labels[:TESTED])


def bench_round(report: Report, choice: Choice) -> None:
    """Play the reference workload; the plain loop has the best of its threads and batches of evaluation."""
    task, cores = workload_task(), usable_cores()
    clients, test = plain_data(task)
    with ExitStack() as stack:
        contestants: dict[object, Callable[[], None]] = {
            (threads, batch): plain_rounds(clients, test, choice.rounds, threads, batch)
            for threads in sorted({1, 2, cores})
            for batch in (250, 500)
        }
        for kernel in KERNELS:
            federation, play = flmarket_rounds(task, choice.rounds, workers=cores, kernel=kernel)
            stack.callback(federation.close)
            contestants[kernel] = play
        timings = take_turns(contestants, choice.repeat)
    plains = [timing for name, timing in timings.items() if name not in KERNELS]
    best, fast = min(plains, key=lambda it: it.median), timings["auto"]
    least = min(plains, key=lambda it: it.cpu)
    report.times("the reference workload, against the plain loop at its best", best.seconds, fast.seconds)
    report.times("the reference workload by CPU time", least.computing, fast.computing)
    report.times("the reference workload without the compiled kernel", best.seconds, timings["reference"].seconds)
    for name, timing in (("flmarket", fast), ("the plain loop at its best", best)):
        report.figure(f"the reference workload, {name}", "rounds/s", [choice.rounds / it for it in timing.seconds])


def paper_rounds(shelf: Shelf, workers: int) -> tuple[Callable[[], None], Callable[[], None]]:
    """Return a call that plays the paper's next round, including policies and market, and a call that closes it.

    Every service's target is out of reach, so that all three train in every round.
    """
    never = [f"services.{name}.target_accuracy=1.0" for name in ("mnist", "fashion-mnist", "emnist")]
    scenario = load_scenario("paper", ["rounds=1000000", *never])
    setup = build(scenario, 0, shelf, workers=workers)

    def play() -> None:
        torch.set_num_threads(1)
        play_round(setup.market, setup.policies)

    return play, setup.federation.close


def bench_paper(report: Report, choice: Choice) -> None:
    """Play the paper's round, three services with full test sets (60,000 images), with one and two workers."""
    shelf = Shelf()
    try:
        for name in ("mnist", "fashion-mnist", "emnist-digits"):
            shelf.get(name)
    except DatasetError as error:
        print(f"paper: skipped, {error}")
        return
    with ExitStack() as stack:
        contestants = {}
        for workers in (1, 2):
            play, close = paper_rounds(shelf, workers)
            stack.callback(close)
            contestants[workers] = play
        # Rounds differ in how much work they are, but each contestant plays the same ones.
        timings = take_turns(contestants, 3 * choice.repeat)
    report.times("a round of `paper`, two workers against one", timings[1].seconds, timings[2].seconds)
    report.figure("a round of `paper`, two workers", "rounds/s", [1 / it for it in timings[2].seconds])


def bench_evaluate(report: Report, choice: Choice) -> None:
    """Evaluate alone, one thread, against ``model(x)`` in its best batch."""
    task = workload_task()
    dataset = task.dataset
    _, (images, labels) = plain_data(task)
    model = plain.LeNet()
    engine = Engine(dataset, task.regime, "auto")
    trainer, start = engine.trainer(), engine.initial_parameters(0, "benchmark")
    ours = partial(trainer.correct, start, dataset.test_images[:TESTED], dataset.test_labels[:TESTED])
    plains = {batch: partial(plain.evaluate, model, images, labels, batch) for batch in (250, 500, 1000)}
    timings = _one_thread({"flmarket": ours} | plains, choice.repeat)
    best = min((timings[batch] for batch in plains), key=lambda it: it.cpu)
    report.times(
        "evaluation, one thread, against `model(x)` in its best batch", best.computing, timings["flmarket"].computing
    )


def bench_limit(report: Report, choice: Choice) -> None:
    """Compare one thread's arithmetic with a large matrix product's."""
    task = workload_task()
    dataset = task.dataset
    images, labels = dataset.train_images[:SAMPLES].copy(), dataset.train_labels[:SAMPLES].copy()
    side = 1024
    a, b = torch.randn(side, side), torch.randn(side, side)
    engine = Engine(dataset, task.regime, "auto")
    start, trainer, order = (
        engine.initial_parameters(0, "benchmark"),
        engine.trainer(),
        visiting_order(SAMPLES, 4, stream(0, "order")),
    )
    contestants: dict[object, Callable[[], object]] = {
        "product": lambda: [a @ b for _ in range(4)],
        "training": partial(trainer.train, start, images, labels, order, task.regime),
        "evaluation": partial(trainer.correct, start, dataset.test_images, dataset.test_labels),
    }
    timings = _one_thread(contestants, choice.repeat)
    work = {"training": TRAIN_FLOP * order.size, "evaluation": EVALUATE_FLOP * len(dataset.test_labels)}
    for name, flop in work.items():
        pairs = zip(timings["product"].computing, timings[name].computing, strict=True)
        shares = [flop / own / (4 * 2.0 * side**3 / product) for product, own in pairs]
        report.figure(f"{name}, one thread, arithmetic a second against torch's 1024 x 1024 product", "times", shares)


def bench_colour(report: Report, choice: Choice) -> None:
    """Train and evaluate on 3 x 32 x 32, one thread, against a plain loop. The images are noise."""
    random = stream(0, "benchmark")
    images = random.integers(0, 256, (2 * SAMPLES, 3, 32, 32), dtype=np.uint8)
    labels = random.integers(0, 10, 2 * SAMPLES, dtype=np.uint8)
    client = torch.from_numpy(images).float() / 255, torch.from_numpy(labels).long()
    model = plain.LeNet(3, 32)
    architecture = fused.Architecture("cnn", 10, shape=Shape(3, 32, 32))
    start = torch.nn.utils.parameters_to_vector(model.parameters()).detach().numpy().copy()
    trainer = FusedTrainer(architecture, 1 / 255, 0.0)
    regime = Regime(batch_size=BATCH, learning_rate=RATE)
    order = visiting_order(len(labels), 1, random)
    contestants: dict[object, Callable[[], object]] = {
        "plain training": partial(plain.train_client, model, client, epochs=1, batch_size=BATCH, rate=RATE),
        "training": partial(trainer.train, start, images, labels, order, regime),
        "plain evaluation": partial(plain.evaluate, model, *client),
        "evaluation": partial(trainer.correct, start, images, labels),
    }
    timings = _one_thread(contestants, choice.repeat)
    for work in ("training", "evaluation"):
        slow, fast = timings[f"plain {work}"].computing, timings[work].computing
        report.times(f"{work} on 3 x 32 x 32, one thread, against plain PyTorch", slow, fast)


def _one_thread(contestants: Mapping[object, Callable[[], object]], repeat: int) -> dict[object, Timing]:
    torch.set_num_threads(1)
    return take_turns(contestants, repeat)


def bench_memory(report: Report, choice: Choice) -> None:
    """Run five rounds of the scenario ``paper`` in a process of its own."""
    # The peak comes early: data sets are loaded and evaluated before the first round.
    program = (
        "import resource, sys, tempfile\nfrom pathlib import Path\n"
        "from scenarios.running.planning import plan\nfrom scenarios.build import Shelf\n"
        "from scenarios.loader import load\nfrom scenarios.running.runner import execute\n"
        "shelf = Shelf()\n"
        "with tempfile.TemporaryDirectory() as out:\n"
        "    [run] = plan([load('paper', ['rounds=5'])], [], [0], Path(out), shelf)\n"
        "    execute(run, shelf, workers=2)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"memory: skipped, {done.stderr.strip().splitlines()[-1]}")
    else:
        report.figure("peak memory of `paper`, two workers", "GB", [int(done.stdout) * 1024 / 1e9])


def bench_peers(report: Report, choice: Choice) -> None:
    """Play the reference workload in other frameworks, each in the virtual environment where it is installed."""
    task = workload_task()
    dataset, cores, found = task.dataset, usable_cores(), contest.installed()
    job = Job(
        "cnn", dataset.info.labels, WARM_UP + choice.rounds, CHOSEN, 1, BATCH, RATE, dataset.scale, dataset.offset
    )
    with TemporaryDirectory() as folder, ExitStack() as stack:
        contest.write(Path(folder), job, dataset, client_images(task))
        contestants = {}
        for workers in (1, cores):
            federation, contestants[workers] = flmarket_rounds(task, choice.rounds, workers=workers, kernel="auto")
            stack.callback(federation.close)
        ratios: dict[str, list[float]] = {name: [] for name in found}
        for _ in range(choice.repeat):
            own = take_turns(contestants, 1)
            for name in list(ratios):
                played = contest.play(name, found[name], Path(folder))
                if played is None:
                    del ratios[name]
                elif name == "flower":  # whose clients train in Ray's processes, on all cores
                    ratios[name].append(played[0]["seconds"] / own[cores].median)
                else:
                    ratios[name].append(played[0]["cpu"] / own[1].cpu)
    for name, times in ratios.items():
        how = " on Ray, by the clock" if name == "flower" else ", by CPU time"
        report.figure(f"the reference workload, against {contest.PEERS[name]}{how}", "times", times)


PARTS = {
    "round": bench_round,
    "paper": bench_paper,
    "evaluate": bench_evaluate,
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
    report = Report(save=arguments.save)
    for report.part in arguments.only:
        PARTS[report.part](report, Choice(arguments.repeat, arguments.rounds))
    report.close()


if __name__ == "__main__":
    main()
