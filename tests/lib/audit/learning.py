"""The results of training: FedAvg in plain PyTorch on the digits, and the surrogate's learning curves."""

import gzip
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import nn

from audit.draws import digest, normal, pair, permutations, subset, words
from audit.runs import LABELS, Run
from audit.world import World


def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return training images [1438, 28, 28] and labels, and those for tests: scikit-learn's file, three times as large.

    Each pixel becomes 3 x 3: the middle ones are its own, the others a third of the way to the neighbour (0 beyond the
    edge); of 16 units of ink 255, rounded; a border of two zeros. Of each label every fifth digit is for tests, from
    the third on.
    """
    package = find_spec("sklearn")
    assert package is not None
    assert package.submodule_search_locations
    with gzip.open(Path(package.submodule_search_locations[0], "datasets/data/digits.csv.gz"), "rt") as file:
        table = np.loadtxt(file, delimiter=",", dtype=np.int64)
    ink, labels = table[:, :-1].reshape(-1, 8, 8), table[:, -1]
    large = np.zeros((len(ink), 28, 28), dtype=np.int64)
    framed = np.pad(ink, ((0, 0), (1, 1), (1, 1)))
    for row in range(24):
        for column in range(24):
            (y, dy), (x, dx) = ((at // 3 + 1, at % 3 - 1) for at in (row, column))
            # A third of the neighbour and two thirds of the pixel itself, in each direction.
            value = sum(
                framed[:, y + dy * i, x + dx * j] * (1 if i else 3 - abs(dy)) * (1 if j else 3 - abs(dx))
                for i in ((0, 1) if dy else (0,))
                for j in ((0, 1) if dx else (0,))
            )
            large[:, row + 2, column + 2] = (value * 255 + 72) // 144
    test = np.zeros(len(labels), dtype=bool)
    for label in range(LABELS):
        test[np.flatnonzero(labels == label)[2::5]] = True
    return large[~test], labels[~test], large[test], labels[test]


def network() -> nn.Module:
    """Return the paper's network: two convolutions, three fully connected layers."""
    return nn.Sequential(
        nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(256, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, LABELS),
    )  # fmt: skip


def initial(seed: int, service: str) -> nn.Module:
    """Return the network with the weights that a service begins with: uniform within 1 / sqrt(fan-in)."""
    module, parameters = network(), 0
    for layer in module:
        if not isinstance(layer, nn.Linear | nn.Conv2d):
            continue
        bound = math.prod(layer.weight.shape[1:]) ** -0.5
        for parameter in (layer.weight, layer.bias):
            sequence = words(seed, ("model", service), 0, parameters, 0)
            values = [bound * ((next(sequence) >> 8) / 2.0**23 - 1.0) for _ in range(parameter.numel())]
            parameter.data = torch.tensor(values, dtype=torch.float64).float().view_as(parameter)
            parameters += 1
    return module


def label_counts(
    size: int, emd: float, seed: int, service: str, number: int, client: int, since: int | None = None
) -> list[int]:
    """Return the images of each label: docs/decisions/data.md, "Which labels". ``since``: the round of what lasts."""
    stream, when = (("images", service), number) if since is None else (("mix", service), since)
    share = [-math.log1p(-pair(seed, stream, when, 0, client, label)[0]) for label in range(LABELS)]
    share = [value / math.fsum(share) for value in share]
    least = size // LABELS
    if emd == 0:
        return [least] * LABELS
    # The (labels above the even share, images in them) that give this very EMD; the nearest to what the draw has.
    choices = []
    for above in range(1, LABELS):
        fewest = max(above * (least + 1), size - (LABELS - above) * least)
        for total in range(fewest, size + 1):
            if abs(2.0 * (total * LABELS - above * size) / (LABELS * size) - emd) < 1e-12:
                choices.append((above, total))
    drawn = sum(value > 1 / LABELS for value in share)
    above, total = min(choices, key=lambda choice: (abs(choice[0] - drawn), choice[0]))
    order = sorted(range(LABELS), key=lambda label: -share[label])
    many, few = order[:above], order[above:]
    counts = [0] * LABELS
    more = divided(total - above * (least + 1), [share[label] for label in many], size)
    lowest = min(share[label] for label in many)
    gaps = [max(lowest - share[label], 1e-12) for label in few]
    less = divided((LABELS - above) * least - (size - total), gaps, least)
    for label, part in zip(many, more, strict=True):
        counts[label] = least + 1 + part
    for label, part in zip(few, less, strict=True):
        counts[label] = least - part
    return counts


def divided(total: int, weights: list[float], most: int) -> list[int]:
    """Divide a whole number in proportion to weights, no part above ``most``: whole parts first, then remainders."""
    parts = [0] * len(weights)
    while left := total - sum(parts):
        free = [at for at, part in enumerate(parts) if part < most]
        scale = math.fsum(weights[at] for at in free)
        ideal = {at: left * weights[at] / scale for at in free}
        step = {at: min(math.floor(value), most - parts[at]) for at, value in ideal.items()}
        if not any(step.values()):
            step = dict.fromkeys(sorted(free, key=lambda at: -ideal[at])[:left], 1)
        for at, more in step.items():
            parts[at] += more
    return parts


@dataclass(frozen=True)
class Round:
    """A round of one service; ``change`` puts another number in the place of each served client's, for tests."""

    run: Run
    number: int
    service: str
    change: Mapping[str, int] = field(default_factory=dict)


def train(round_: Round, model: nn.Module) -> nn.Module:
    """Return the global model after a round: FedAvg of what the served clients make of ``model``.

    Each client's images are drawn as docs/decisions/data.md says, and visited in the order that is drawn there.
    """
    torch.set_num_threads(1)
    pixels, targets, _, _ = standardised()
    run, service = round_.run, round_.service
    seed, regime = run.meta["seed"], run.meta["training"]["digits"]
    pools, world = left_for_clients(run, targets.numpy()), World(run)
    trained = []
    for row in run.served(round_.number, service).itertuples():
        who = {"number": round_.number, "client": row.client, "size": row.data_size} | round_.change
        number, client, size = who["number"], who["client"], who["size"]
        since = world.since(number, service, client)
        counts = world.mix(number, service, client, size) or label_counts(
            size, row.emd, seed, service, number, client, since
        )
        chosen = np.concatenate(
            [
                pool[subset(count, len(pool), words(seed, ("images", service), number, 1 + label, client))]
                for label, (count, pool) in enumerate(zip(counts, pools, strict=True))
            ]
        )
        local = network()
        local.load_state_dict(model.state_dict())
        descent = torch.optim.SGD(local.parameters(), regime["learning_rate"], regime["momentum"])
        for order in permutations(size, regime["local_epochs"], digest(seed, "local", number, client, service)):
            for batch in torch.tensor(chosen[order]).split(regime["batch_size"]):
                descent.zero_grad()
                nn.functional.cross_entropy(local(pixels[batch]), targets[batch]).backward()
                descent.step()
        trained.append((size, local))
    if not trained:
        return model
    total = sum(size for size, _ in trained)
    merged = network()
    with torch.no_grad():
        for at, parameter in enumerate(merged.parameters()):
            parameter.copy_(sum(size / total * list(one.parameters())[at].double() for size, one in trained))
    return merged


def held_out(run: Run, labels: np.ndarray) -> list[np.ndarray]:
    """Return for each label the training images that are held out: docs/decisions/data.md, "Which are held out"."""
    total, seed = int(run.share * len(labels)), run.meta["seed"]
    pools = [np.flatnonzero(labels == label) for label in range(LABELS)]
    counts = [total * len(pool) // len(labels) for pool in pools]
    rest = [total * len(pool) % len(labels) for pool in pools]
    for label in sorted(range(LABELS), key=lambda label: -rest[label])[: total - sum(counts)]:
        counts[label] += 1
    drawn = [
        subset(count, len(pool), words(seed, ("validation", "digits"), 0, label, 0))
        for label, (count, pool) in enumerate(zip(counts, pools, strict=True))
    ]
    return [pool[own] for pool, own in zip(pools, drawn, strict=True)]


def left_for_clients(run: Run, labels: np.ndarray) -> list[np.ndarray]:
    """Return for each label the training images that clients draw from."""
    pools = [np.flatnonzero(labels == label) for label in range(LABELS)]
    return [np.setdiff1d(pool, own) for pool, own in zip(pools, held_out(run, labels), strict=True)]


def accuracies(run: Run, service: str, model: nn.Module) -> dict[str, tuple[float, int]]:
    """Return the accuracies of a model, by their columns in rounds.csv, and the number of images of each."""
    pixels, targets, tests, labels = standardised()
    held = np.sort(np.concatenate(held_out(run, targets.numpy())))
    kinds = {"accuracy": (0, tests, labels)}
    if run.share:
        kinds = {"accuracy": (1, pixels[held], targets[held]), "test_accuracy": (0, tests, labels)}
    found = {}
    for column, (kind, images, right) in kinds.items():
        wanted = (run.validated if kind else run.tested)("digits")
        some = subset(wanted, len(right), words(run.meta["seed"], ("evaluation", service), 0, kind, 0))
        with torch.no_grad():
            correct = int((model(images[some]).argmax(1) == right[some]).sum())
        found[column] = correct / wanted, wanted
    return found


def vector(model: nn.Module) -> np.ndarray:
    """Return all parameters of a model, one after another."""
    return nn.utils.parameters_to_vector(model.parameters()).detach().numpy()


@cache
def standardised() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the digits with mean 0 and standard deviation 1 over the pixels of the training split, and labels."""
    images, labels, test_images, test_labels = digits()
    mean, deviation = images.mean(), images.std()
    pixels, tests = (
        torch.tensor((part - mean) / deviation, dtype=torch.float32)[:, None] for part in (images, test_images)
    )
    return pixels, torch.tensor(labels), tests, torch.tensor(test_labels)


def accuracies_of(run: Run) -> pd.DataFrame:
    """Return the accuracies of all rows of rounds.csv with all their digits.

    Those of the surrogate are of the fitted curves that meta.json holds (docs/surrogate.md). Those of trained models
    are of the log, as the nearest shares of the images that are looked at.
    """
    found = run.rounds[["accuracy", "test_accuracy"]].copy()
    for name, service in run.services.items():
        rows = run.rounds[run.rounds.service == name]
        if run.surrogate:
            curve = _curve(run, name, run.meta["fits"][f"surrogate/{service['dataset']}"])
            found.loc[rows.index, "accuracy"] = found.loc[rows.index, "test_accuracy"] = curve
            continue
        for column, images in ("accuracy", run.validated), ("test_accuracy", run.tested):
            count = images(service["dataset"])
            found.loc[rows.index, column] = (rows[column] * count).round() / count
        if not run.share:
            found.loc[rows.index, "test_accuracy"] = found.loc[rows.index, "accuracy"]
    return found


def _curve(run: Run, name: str, p: dict[str, float]) -> list[float]:
    """Return the surrogate's accuracy of a service in each round."""
    world, seed, found = World(run), run.meta["seed"], []
    truth = run.offers if run.truth is None else run.truth
    luck, u, accuracy = normal(seed, ("surrogate", name), 0), 0.0, 1.0 - p["start"]
    for number in run.begins.index:
        served = run.served(number, name)
        if len(served):
            # The images that an update was trained on, those that its client reports, and their true EMD.
            emds = [world.held(number, name, client)[1] for client in served.client]
            work = list(zip(truth.data_size[served.index], served.data_size, emds, strict=True))
            u, accuracy = _advance(p, u, luck, normal(seed, ("surrogate", name), number), work)
        found.append(accuracy)
    return found


def _advance(
    p: dict[str, float], u: float, luck: float, z: float, work: list[tuple[int, int, float]]
) -> tuple[float, float]:
    """Return progress and accuracy after a round."""
    weight = sum(told for _, told, _ in work)
    length = math.sqrt(sum(told**2 for _, told, _ in work)) / weight
    a, b = math.log(sum(size for size, _, _ in work) / 400), -2 * math.log(length)
    v = sum(told * emd for _, told, emd in work) / weight
    s, early = v * length, 1 / (1 + u)
    first = p["first_size"] * a + p["first_clients"] * b + p["first_emd"] * v + p["luck"] * luck
    u += math.exp(p["step_0"] + p["step_size"] * a + p["step_clients"] * b + p["step_emd"] * v + early * first)
    spread = math.exp(p["spread_0"] + p["spread_progress"] * math.log(1 + u) + p["spread_left"] * s)
    noise = spread * (z + p["skew"] * (z * z - 1)) / math.sqrt(1 + 2 * p["skew"] ** 2)
    drift = (1 - 1 / (1 + u)) * (p["drift_emd"] * v + p["drift_left"] * s)
    change = -p["decay"] / p["shape"] * math.log(1 + u ** p["shape"]) + drift + noise
    return u, 1 - p["floor"] - (p["start"] - p["floor"]) * math.exp(min(change, 0.0))
