"""Federated training of real models: the ``Federation`` behind a market.

Each round all (client, service) jobs are trained, spread over worker threads; then each service's models are averaged
(FedAvg) and its new global model is evaluated. What a job yields depends only on its own inputs, each job runs on one
thread, and sums are taken in a fixed order: results have the same bits for any number of workers.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch

from fl.arrays import AnyArray, Float32Array, FloatArray, Labels, Pixels
from fl.batched import ClientData
from fl.blame import Foreign, blame, represent
from fl.datasets import Dataset
from fl.draws import draw_key, subsets
from fl.engine import Engine
from fl.errors import RunError
from fl.fedavg import fedavg
from fl.jobs import Diverged, Federation, TrainingJob, TrainingOutcome
from fl.local import Trainer, visiting_order
from fl.model_names import BUILTIN
from fl.partition import draw_images, label_counts
from fl.regime import Kernel, Regime
from fl.streams import stream

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Task:
    """What one service learns.

    Attributes:
        service: its name.
        dataset: its data set.
        regime: how its clients train.
        eval_samples: test images that each evaluation looks at; None for all.
    """

    service: str
    dataset: Dataset
    regime: Regime
    eval_samples: int | None = None


class ModelFailed(RunError):  # noqa: N818 - names what happened
    """A plug-in's model raised an exception while it was trained or evaluated."""


class _Learner:
    """One service's side of the federation: its global model, test images, and idle trainers."""

    def __init__(self, task: Task, seed: int, kernel: Kernel, device: str) -> None:
        self.task = task
        self.engine = Engine(task.dataset, task.regime, kernel)
        self.batched = None if device == "cpu" else self.engine.batched(device)
        self.parameters = self.engine.initial_parameters(seed, "model", task.service)
        self.test_images, self.test_labels = self._test_images(seed)
        self._images, self._mixes = (draw_key(seed, name, task.service) for name in ("images", "mix"))
        self.accuracy = float("nan")
        self._idle: list[Trainer] = []

    def client_data(self, seed: int, round_: int, job: TrainingJob) -> ClientData:
        """Draw the images of one job and the order in which it visits them; every round has fresh images."""
        dataset = self.task.dataset
        # A mix that lasts has a stream of its own: it is not that of the data drawn anew in the round it began.
        mix = (self._images, round_) if job.mix is None else (self._mixes, job.mix)
        drawn = None if job.counts is None else np.array(job.counts)
        counts = label_counts(job.size, job.emd, dataset.info.labels, *mix, job.client) if drawn is None else drawn
        chosen = draw_images(counts, dataset.by_label, self._images, round_, job.client)
        local = stream(seed, "local", round_, job.client, job.service)
        order = visiting_order(job.size, self.task.regime.local_epochs, local)
        return ClientData(dataset.train_images[chosen], dataset.train_labels[chosen], order)

    @contextmanager
    def trainer(self) -> Iterator[Trainer]:
        """Lend a trainer to one thread. There are never more than threads have asked for at once."""
        try:
            trainer = self._idle.pop()
        except IndexError:
            trainer = self.engine.trainer()
        try:
            with self.blaming():
                yield trainer
        finally:
            self._idle.append(trainer)

    def blaming(self) -> AbstractContextManager[None]:
        """Return a context in which an exception of a plug-in's model is a ``ModelFailed`` that names it."""
        model, service = self.task.regime.model, self.task.service
        if model in BUILTIN:
            return nullcontext()
        return Foreign(
            lambda error: ModelFailed(
                f"model {model!r} of service {service!r} failed: {represent(error)}{blame(error)}"
            )
        )

    def _test_images(self, seed: int) -> tuple[Pixels, Labels]:
        dataset, wanted = self.task.dataset, self.task.eval_samples
        total = len(dataset.test_labels)
        if wanted is None or wanted >= total:
            return dataset.test_images, dataset.test_labels
        chosen = subsets(draw_key(seed, "evaluation", self.task.service), np.array([wanted]), np.array([total]))[0]
        return dataset.test_images[chosen], dataset.test_labels[chosen]


class RealFederation(Federation):
    """Trains real models on real images. See ``fl.jobs.Federation``."""

    def __init__(
        self, tasks: Sequence[Task], seed: int, *, workers: int = 1, kernel: Kernel = "auto", device: str = "cpu"
    ) -> None:
        """Initialise and evaluate one global model for each service.

        Args:
            tasks: one for each service.
            seed: the run's seed; models, images and orders are drawn from its keyed streams.
            workers: training threads; 0 trains in the calling thread.
            kernel: the code that trains on a CPU (``fl.engine``).
            device: ``cpu``, or a torch device on which all clients of a service are trained at once.

        Raises:
            KernelError: the kernel cannot train a task's model on this machine.
        """
        # A matrix product's bits depend on how many threads share it; here the jobs are shared instead.
        torch.set_num_threads(1)
        self._seed = seed
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="flmarket-train") if workers else None
        self._learners = {task.service: _Learner(task, seed, kernel, device) for task in tasks}
        self._evaluate(self._learners.values())

    @property
    def kernels(self) -> Mapping[str, str]:
        """See ``Federation.kernels``."""
        return {name: "batched" if it.batched else it.engine.kernel for name, it in self._learners.items()}

    def accuracy(self, service: str) -> float:
        """See ``Federation.accuracy``."""
        return self._learners[service].accuracy

    def train_round(self, round_: int, jobs: Sequence[TrainingJob]) -> Mapping[str, TrainingOutcome]:
        """See ``Federation.train_round``."""
        return self._aggregate(round_, jobs, self._train(round_, jobs))

    def _aggregate(
        self, round_: int, jobs: Sequence[TrainingJob], trained: Sequence[tuple[Float32Array, float]]
    ) -> Mapping[str, TrainingOutcome]:
        """Average what each service's jobs have trained, and evaluate the new global models."""
        by_service = _by_service(jobs)
        for service, own in by_service.items():
            for index in own:
                if not np.isfinite(trained[index][1]):
                    raise Diverged(service, round_, jobs[index].client)
            merged = _merged([(jobs[index], trained[index][0]) for index in own])
            if not np.isfinite(merged).all():
                raise Diverged(service, round_, None)
            self._learners[service].parameters = merged
        self._evaluate(self._learners[service] for service in by_service)
        return {
            service: TrainingOutcome(self.accuracy(service), np.array([trained[index][1] for index in own]))
            for service, own in by_service.items()
        }

    def leave_one_out(self, round_: int, jobs: Sequence[TrainingJob]) -> FloatArray:
        """Train a round of one service as ``train_round`` does, and see what it would have been without each client.

        Every client trains once, and the updates of the others are averaged: a client costs one more evaluation.

        Args:
            round_: the round, from 1.
            jobs: all jobs of one service, at least one.

        Returns:
            [jobs] the accuracy without the client of each job; without any other client the model stays as it was.

        Raises:
            Diverged: a loss or a model is no longer finite.
        """
        learner = self._learners[jobs[0].service]
        before, trained, without = learner.parameters, self._train(round_, jobs), np.empty(len(jobs))
        for left in range(len(jobs)):
            others = [(job, trained[index][0]) for index, job in enumerate(jobs) if index != left]
            learner.parameters = _merged(others) if others else before
            self._evaluate([learner])
            without[left] = learner.accuracy
        learner.parameters = before
        self._aggregate(round_, jobs, trained)
        return without

    def state(self) -> dict[str, AnyArray]:
        """See ``Federation.state``: each service's global model [P] and its accuracy."""
        models = {f"{name}/model": learner.parameters for name, learner in self._learners.items()}
        return models | {f"{name}/accuracy": np.array([it.accuracy]) for name, it in self._learners.items()}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """See ``Federation.restore``."""
        for name, learner in self._learners.items():
            learner.parameters = np.array(state[f"{name}/model"])
            learner.accuracy = float(state[f"{name}/accuracy"][0])

    def close(self) -> None:
        """See ``Federation.close``."""
        if self._pool:
            self._pool.shutdown()

    def _train(self, round_: int, jobs: Sequence[TrainingJob]) -> list[tuple[Float32Array, float]]:
        """Train all jobs; return each one's parameters [P] and mean loss, in the order of ``jobs``."""

        def train(index: int) -> tuple[Float32Array, float]:
            learner = self._learners[jobs[index].service]
            data = learner.client_data(self._seed, round_, jobs[index])
            with learner.trainer() as trainer:
                return trainer.train(learner.parameters, *data, learner.task.regime)

        done: dict[int, tuple[Float32Array, float]] = {}
        for service, own in _by_service(jobs).items():
            learner = self._learners[service]
            if learner.batched:
                clients = [learner.client_data(self._seed, round_, jobs[index]) for index in own]
                with learner.blaming():
                    trained = learner.batched.train(learner.parameters, clients, learner.task.regime)
                done.update(zip(own, trained, strict=True))
        # The longest first, so that no worker is left with a long one at the end.
        order = sorted(set(range(len(jobs))) - done.keys(), key=lambda index: (-self._work(jobs[index]), index))
        done.update(zip(order, self._map(train, order), strict=True))
        return [done[index] for index in range(len(jobs))]

    def _work(self, job: TrainingJob) -> int:
        return job.size * self._learners[job.service].task.regime.local_epochs

    def _evaluate(self, learners: Iterable[_Learner]) -> None:
        """Set the accuracy of each learner's global model on its test images: correct / tested."""

        def correct(part: tuple[_Learner, slice]) -> int:
            learner, images = part
            with learner.trainer() as trainer:
                return trainer.correct(learner.parameters, learner.test_images[images], learner.test_labels[images])

        parts: list[tuple[_Learner, slice]] = []
        hits: dict[_Learner, int] = {}
        for learner in learners:
            hits[learner] = 0
            if learner.batched:
                with learner.blaming():
                    hits[learner] = learner.batched.correct(
                        learner.parameters, learner.test_images, learner.test_labels
                    )
            else:
                chunk = learner.engine.evaluation_chunk
                parts += [(learner, slice(first, first + chunk)) for first in range(0, len(learner.test_labels), chunk)]
        for (learner, _), count in zip(parts, self._map(correct, parts), strict=True):
            hits[learner] += count
        for learner, count in hits.items():
            learner.accuracy = count / len(learner.test_labels)

    def _map(self, function: Callable[[_Item], _Result], items: Iterable[_Item]) -> Iterator[_Result]:
        """Apply the function to all items, on the workers; results in the order of the items."""
        return self._pool.map(function, items) if self._pool else map(function, items)


def _merged(updates: Iterable[tuple[TrainingJob, Float32Array]]) -> Float32Array:
    """Return the average of a service's updates; by client, as a sum must not depend on whom a policy chose first."""
    ordered = sorted(updates, key=lambda update: update[0].client)
    return fedavg([parameters for _, parameters in ordered], [job.weight for job, _ in ordered])


def _by_service(jobs: Sequence[TrainingJob]) -> dict[str, list[int]]:
    """Return the indices of each service's jobs."""
    found: dict[str, list[int]] = defaultdict(list)
    for index, job in enumerate(jobs):
        found[job.service].append(index)
    return found
