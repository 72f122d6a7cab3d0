"""Federated training of real models: the ``Federation`` behind a market.

Each round all (client, service) jobs are trained, spread over worker threads; then each service's models are averaged
(FedAvg) and its new global model is evaluated. What a job yields depends only on its own inputs, each job runs on one
thread, and sums are taken in a fixed order: results have the same bits for any number of workers.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

import numpy as np

from fl.arithmetic.draws import draw_key, subsets
from fl.arithmetic.streams import stream
from fl.arrays import AnyArray, Float32Array, IntArray, UInt32Array
from fl.data.label_counts import draw_images, label_counts
from fl.data.validation_split import split
from fl.training.fedavg import fedavg
from fl.training.jobs import Diverged, Federation, TrainingJob, TrainingOutcome
from fl.training.regime import Kernel
from fl.training.tasks import ClientData, Images, ModelFailed, Task, Trainer, visiting_order
from fl.training.trainers import Engine
from flmarket.core.plugin_errors import plugin_code

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class _Learner:
    """One service's side of the federation: its global model, what that is evaluated on, and idle trainers."""

    def __init__(self, task: Task, seed: int, kernel: Kernel, device: str) -> None:
        self.task = task
        self.engine = Engine(task.dataset, task.regime, kernel)
        self.batched = None if device == "cpu" else self.engine.batched(device)
        self.parameters = self.engine.initial_parameters(seed, "model", task.service)
        data, divided = task.dataset, split(task.dataset.by_label, task.dataset.info.name, task.validation, seed)
        self._pools, held = divided.by_label, divided.held_out
        evaluation = draw_key(seed, "evaluation", task.service)
        # the images of ``accuracy``, which the market acts on
        self.loop = self._some(Images(data.test_images, data.test_labels), evaluation, 0)
        self.test: Images | None = None  # the images of ``test_accuracy``; None where ``loop`` has the test images
        if task.validation:
            self.test = self.loop
            self.loop = self._some(Images(data.train_images[held], data.train_labels[held]), evaluation, 1)
        self._images, self._mixes = (draw_key(seed, name, task.service) for name in ("images", "mix"))
        self.accuracy = float("nan")
        self.test_accuracy: float | None = None
        self._idle: list[Trainer] = []

    def client_data(self, seed: int, round_: int, job: TrainingJob) -> ClientData:
        """Return the images of one job and the order in which it visits them.

        Where the job does not name them, every round has fresh images.
        """
        dataset = self.task.dataset
        chosen = self._drawn(round_, job) if job.images is None else job.images
        local = stream(seed, "local", round_, job.client, job.service)
        order = visiting_order(job.size, self.task.regime.local_epochs, local)
        return ClientData(dataset.train_images[chosen], dataset.train_labels[chosen], order)

    def _drawn(self, round_: int, job: TrainingJob) -> IntArray:
        # A mix that lasts has a stream of its own: it is not that of the data drawn afresh in the round it began.
        mix = (self._images, round_) if job.mix is None else (self._mixes, job.mix)
        labels = self.task.dataset.info.labels
        counts = (
            label_counts(job.size, job.emd, labels, *mix, job.client) if job.counts is None else np.array(job.counts)
        )
        return draw_images(counts, self._pools, self._images, round_, job.client)

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
        return plugin_code(f"model {self.task.regime.model!r} of service {self.task.service!r} failed", ModelFailed)

    def _some(self, images: Images, key: UInt32Array, which: int) -> Images:
        """Return as many images as each evaluation looks at; ``which`` is the second word of the draw's counter."""
        wanted, total = self.task.eval_samples, len(images.labels)
        if wanted is None or wanted >= total:
            return images
        [chosen] = subsets(key, np.array([wanted]), np.array([total]), 0, which)
        return Images(images.pixels[chosen], images.labels[chosen])


class RealFederation(Federation):
    """Trains real models on real images. See ``fl.training.jobs.Federation``."""

    def __init__(
        self,
        tasks: Sequence[Task],  # one for each service
        seed: int,  # the run's seed; models, images and orders are drawn from its keyed streams
        *,
        workers: int = 1,  # training threads; 0 trains in the calling thread
        kernel: Kernel = "auto",  # the code that trains on a CPU (``fl.training.trainers``)
        device: str = "cpu",  # ``cpu``, or a torch device on which all clients of a service are trained at once
    ) -> None:
        self._seed = seed
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="flmarket-train") if workers else None
        self._learners = {task.service: _Learner(task, seed, kernel, device) for task in tasks}
        self._evaluate(self._learners.values())

    @property
    def kernels(self) -> Mapping[str, str]:
        return {name: "batched" if it.batched else it.engine.kernel for name, it in self._learners.items()}

    def accuracy(self, service: str) -> float:
        return self._learners[service].accuracy

    def test_accuracy(self, service: str) -> float | None:
        return self._learners[service].test_accuracy

    def train_round(self, round_: int, jobs: Sequence[TrainingJob]) -> Mapping[str, TrainingOutcome]:
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
            service: TrainingOutcome(
                self.accuracy(service), np.array([trained[index][1] for index in own]), self.test_accuracy(service)
            )
            for service, own in by_service.items()
        }

    def state(self) -> dict[str, AnyArray]:
        """See ``Federation.state``: each service's global model [P], its accuracy, and its test accuracy, if any."""
        models = {f"{name}/model": learner.parameters for name, learner in self._learners.items()}
        models |= {f"{name}/accuracy": np.array([it.accuracy]) for name, it in self._learners.items()}
        return models | {
            f"{name}/test_accuracy": np.array([it.test_accuracy])
            for name, it in self._learners.items()
            if it.test_accuracy is not None
        }

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        for name, learner in self._learners.items():
            learner.parameters = np.array(state[f"{name}/model"])
            learner.accuracy = float(state[f"{name}/accuracy"][0])
            if learner.test is not None:
                learner.test_accuracy = float(state[f"{name}/test_accuracy"][0])

    def close(self) -> None:
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
        wanted: list[tuple[_Learner, Images]] = []
        for learner in learners:
            wanted += [(learner, images) for images in (learner.loop, learner.test) if images is not None]
        for (learner, images), accuracy in zip(wanted, self._measure(wanted), strict=True):
            if images is learner.loop:
                learner.accuracy = accuracy
            else:
                learner.test_accuracy = accuracy

    def _measure(self, wanted: Sequence[tuple[_Learner, Images]]) -> list[float]:
        """Return the accuracy of each learner's global model on some images: correct / tested."""

        def correct(part: tuple[int, slice]) -> int:
            learner, images = wanted[part[0]]
            with learner.trainer() as trainer:
                return trainer.correct(learner.parameters, images.pixels[part[1]], images.labels[part[1]])

        parts: list[tuple[int, slice]] = []
        hits = [0] * len(wanted)
        for place, (learner, images) in enumerate(wanted):
            if learner.batched:
                with learner.blaming():
                    hits[place] = learner.batched.correct(learner.parameters, images.pixels, images.labels)
            else:
                chunk = learner.engine.evaluation_chunk
                parts += [(place, slice(first, first + chunk)) for first in range(0, len(images.labels), chunk)]
        for (place, _), count in zip(parts, self._map(correct, parts), strict=True):
            hits[place] += count
        return [count / len(images.labels) for count, (_, images) in zip(hits, wanted, strict=True)]

    def _map(self, function: Callable[[_Item], _Result], items: Iterable[_Item]) -> Iterator[_Result]:
        """Apply the function to all items, on the workers; results in the order of the items."""
        return self._pool.map(function, items) if self._pool else map(function, items)


def _merged(updates: Iterable[tuple[TrainingJob, Float32Array]]) -> Float32Array:
    """Return the average of a service's updates; by client, as a sum must not depend on whom a policy chose first."""
    ordered = sorted(updates, key=lambda update: update[0].client)
    return fedavg([parameters for _, parameters in ordered], [job.weight for job, _ in ordered])


def _by_service(jobs: Sequence[TrainingJob]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for index, job in enumerate(jobs):
        found[job.service].append(index)
    return found
