"""Jobs that other frameworks published, played by flmarket and by them: the whole command, its memory, the accuracy.

    python benchmarks/jobs.py --repeat 3

A job is a scenario file in ``peers/``. All contestants read the same images and the same partition from files, and
evaluate the same test images in every round, in turns on the same machine; each chooses its clients at random itself.
``make bench-peers`` installs the others. Where the images are not at hand, noise of the same shape takes their place,
and no accuracy is reported.
"""

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from csv import DictReader
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import contest
import numpy as np
from measure import Report
from models import noise
from peers.workload import WARM_UP, Job

from fl.arithmetic.draws import draw_key
from fl.data.dataset import Dataset
from fl.data.registry import DatasetError, info, load
from scenarios.file.client_files import partition_of
from scenarios.file.schema import Scenario
from scenarios.loader import load as load_scenario
from scenarios.plugin_files import load_plugin

JOBS = {"lr_mnist": "LR_MNIST", "cnn_femnist": "CNN_FEMNIST", "cnn_cifar10": "BlazeFL's CIFAR-10 job"}
"""The files in ``peers/``, and what their authors call them."""

PLUGINS = {"cnn_femnist": contest.HERE / "peers" / "networks.py"}
"""The files that hold a job's network, where flmarket does not come with it."""

LAST = 5
"""Rounds whose mean accuracy is compared: that of one round depends much on who trained in it."""

Played = tuple[dict[str, Any], contest.Whole]
"""What a contestant's clock reported, and its whole command."""

PARTS: Mapping[str, Callable[[Played], float]] = {
    "whole command": lambda played: played[1].seconds,
    "whole command by CPU time": lambda played: played[1].cpu,
    "rounds alone": lambda played: played[0]["seconds"],
}


def images(scenario: Scenario) -> tuple[Dataset, bool]:
    """Return what a job learns, and whether it is real and not noise."""
    name, tested = scenario.services[0].dataset, scenario.training.eval_samples
    try:
        dataset, real = load(name), True
    except DatasetError as error:
        print(f"{scenario.name}: noise instead of images: {error}")
        known = info(name)
        dataset, real = noise(known.shape, known.labels, (known.train_size, known.test_size)), False
    if tested is not None:
        few = np.arange(tested) * len(dataset.test_labels) // tested
        dataset = replace(dataset, test_images=dataset.test_images[few], test_labels=dataset.test_labels[few])
    return dataset, real


def write(folder: Path, scenario: Scenario) -> bool:
    """Write a scenario's job for all contestants; return whether its images are real."""
    dataset, real = images(scenario)
    partition = partition_of(scenario, scenario.services[0].dataset)
    key = draw_key(0, "partition", partition.dataset)
    clients = partition.division.divide(dataset.by_label, partition.clients, key)
    regime = scenario.training_for(scenario.services[0].dataset)
    price = scenario.clients.cost.per_sample * len(clients[0])
    job = Job(
        model=regime.model,
        labels=dataset.info.labels,
        rounds=scenario.rounds,
        chosen=round(float(scenario.services[0].budget) / price),
        epochs=regime.local_epochs,
        batch=regime.batch_size,
        rate=regime.learning_rate,
        scale=dataset.scale,
        offset=dataset.offset,
    )
    contest.write(folder, job, dataset, clients)
    return real


def play_flmarket(path: Path, folder: Path, seed: int, *, real: bool) -> Played:
    """Play a job by ``flmarket run``; its log tells when each round ended."""
    with TemporaryDirectory() as out:
        own = [f"data.partition={folder}/partition.json"]
        plugin = ["--plugin", str(PLUGINS[path.stem])] if path.stem in PLUGINS else []
        if not real or load_scenario(str(path)).training.eval_samples:  # flmarket's own files hold other images
            own.append(f"services.service.dataset={folder}/images.npz")
        program = str(Path(sys.executable).with_name("flmarket"))
        options = [
            *plugin,
            "--quiet",
            "--seed",
            str(seed),
            "--out",
            out,
            *[word for value in own for word in ("--set", value)],
        ]
        whole = contest.watched([program, "run", str(path), *options], os.environ)
        [log] = Path(out).rglob("run.log")
        rounds = [line.split(" INFO ")[0] for line in log.read_text().splitlines() if " INFO round " in line]
        first, last = (datetime.strptime(rounds[at], "%Y-%m-%d %H:%M:%S,%f") for at in (WARM_UP - 1, -1))
        with (log.parent / "rounds.csv").open() as file:
            accuracies = [float(row["accuracy"]) for row in DictReader(file)]
    return {"seconds": (last - first).total_seconds(), "accuracies": accuracies}, whole


def bench(report: Report, name: str, repeat: int) -> None:
    """Play one job, in turns."""
    path = contest.HERE / "peers" / f"{name}.toml"
    if name in PLUGINS:
        load_plugin(PLUGINS[name])
    commands = contest.installed() | {"plain": contest.plain()}
    took: dict[str, list[Played]] = {who: [] for who in ("flmarket", *commands)}
    with TemporaryDirectory() as folder:
        real = write(Path(folder), load_scenario(str(path)))
        for seed in range(repeat):
            took["flmarket"].append(play_flmarket(path, Path(folder), seed, real=real))
            for who in list(commands):
                played = contest.play(who, commands[who], Path(folder))
                if played is None:
                    del took[who], commands[who]
                else:
                    took[who].append(played)
    ours = took.pop("flmarket")
    job = JOBS[name] + ", noise" * (not real)
    for unit, sample in (("s", [it.seconds for _, it in ours]), ("s of CPU", [it.cpu for _, it in ours])):
        report.figure(f"{job}, flmarket, whole command", unit, sample)
    _finish(report, f"{job}, flmarket", ours, real=real)
    for who, theirs in took.items():
        versus = f"{job}, {contest.PEERS.get(who, 'the plain loop, torch')} {theirs[0][0]['version']}"
        for part, measured in PARTS.items():
            report.times(f"{versus} against flmarket, {part}", *(list(map(measured, it)) for it in (theirs, ours)))
        _finish(report, versus, theirs, real=real)


def _finish(report: Report, who: str, played: list[Played], *, real: bool) -> None:
    report.figure(f"{who}, peak memory", "MB", [it.memory for _, it in played])
    if real:
        last = [it["accuracies"][-LAST:] for it, _ in played]
        report.figure(f"{who}, accuracy, mean of the last {len(last[0])} rounds", "%", [100 * fmean(it) for it in last])


def main() -> None:
    """Play the jobs that the command line selects."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3, help="alternating repetitions (default 3)")
    parser.add_argument("--only", choices=JOBS, nargs="+", default=list(JOBS), help="jobs (default all)")
    parser.add_argument("--no-save", dest="save", action="store_false", help="write nothing to benchmarks/results/")
    arguments = parser.parse_args()
    report = Report(save=arguments.save)
    for report.part in arguments.only:
        bench(report, report.part, arguments.repeat)
    report.close()


if __name__ == "__main__":
    main()
