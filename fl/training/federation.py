"""Federated training of real models: the ``Federation`` behind a market.

Each round all (client, service) jobs are trained, spread over worker threads; then each service's models are aggregated
and its new global model is evaluated. What a job yields depends only on its own inputs, each job runs on one thread,
and sums are taken in a fixed order: results have the same bits for any number of workers.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import NamedTuple

import numpy as np

from fl.arithmetic.draws import draw_key, subsets
from fl.arithmetic.streams import stream
from fl.arrays import AnyArray, Float32Array, FloatArray, IntArray, UInt32Array
from fl.data.emd import draw_images, label_counts
from fl.data.validation_split import split
from fl.training.aggregator import AggregatorError, Updates, aggregate, checkpoint_arrays, proximal_weight
from fl.training.conduct import CONDUCT, sent_model, used_labels
from fl.training.jobs import HONEST, Asynchronous, Delivery, Diverged, TrainingJob, TrainingOutcome
from fl.training.models import MODELS
from fl.training.proximal import train_near
from fl.training.regime import Kernel
from fl.training.tasks import ClientData, Images, ModelFailed, Task, Trainer, visiting_order
from fl.training.trainers import Engine
from fl.training.trigger import Trigger, model_of
from flmarket.core.errors import InputError, RunError
from flmarket.core.plugin_errors import blame, method

MOST_HELD = 2**28
"""Bytes of trained models that may wait to be aggregated, beyond those of one client for each worker."""


class _Learner:
    """One service's side of the federation: its global model, what that is evaluated on, and idle trainers."""

    def __init__(self, task: Task, seed: int, kernel: Kernel, device: str) -> None:
        self.task = task
        self.engine = Engine(task.dataset, task.regime, kernel, task.service)
        self._device, self._model = device, (seed, "model", task.service)
        self.proximal = proximal_weight(task.aggregator)
        self.batched = None if device == "cpu" else self.engine.batched(device, *self._model)
        if self.proximal:  # it acts between the steps of one client
            self.batched = None
        self.kernel = self.engine.kernel if device == "cpu" else "batched" if self.batched else f"reference on {device}"
        self.parameters = self.engine.initial_parameters(*self._model)
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
        self.conduct = draw_key(seed, CONDUCT, task.service)
        self.accuracy = float("nan")
        self.test_accuracy: float | None = None
        self._idle: list[Trainer] = []

    def client_data(self, seed: int, round_: int, job: TrainingJob, slot: int | None = None) -> ClientData:
        """Return the images of one job and the order in which it visits them.

        Where the job does not name them, every slot has fresh images; None: the round is one.
        """
        dataset, conduct = self.task.dataset, job.conduct or HONEST
        chosen = self._drawn(round_ if slot is None else slot, job) if job.images is None else job.images
        local = stream(seed, "local", round_, job.client, job.service)
        order = visiting_order(job.size, conduct.epochs or self.task.regime.local_epochs, local)
        labels = dataset.train_labels[chosen]
        if job.conduct:
            labels = used_labels(conduct, labels, dataset.info.labels, self.conduct, job.client, chosen)
        return ClientData(dataset.train_images[chosen], labels, order)

    def _drawn(self, slot: int, job: TrainingJob) -> IntArray:
        # A mix that lasts has a stream of its own: it is not that of the data drawn afresh in the round it began.
        mix = (self._images, slot) if job.mix is None else (self._mixes, job.mix)
        labels = self.task.dataset.info.labels
        counts = (
            label_counts(job.size, job.emd, labels, *mix, job.client) if job.counts is None else np.array(job.counts)
        )
        return draw_images(counts, self._pools, self._images, slot, job.client)

    @contextmanager
    def trainer(self) -> Iterator[Trainer]:
        """Lend a trainer to one thread. There are never more than threads have asked for at once."""
        try:
            trainer = self._idle.pop()
        except IndexError:
            trainer = self.engine.trainer(*self._model, device=self._device)
        try:
            yield trainer
        finally:
            self._idle.append(trainer)

    @contextmanager
    def blaming(self, doing: str) -> Iterator[None]:
        """Let an exception of a plug-in's model, or of torch in it, become a ``ModelFailed`` that names it."""
        name = self.task.regime.model
        try:
            yield
        except (Exception, SystemExit) as error:
            if isinstance(error, InputError | RunError) or MODELS.is_builtin(name):
                raise
            failed = f"model {name!r} of service {self.task.service!r} failed {doing}: {blame(error)}"
            raise ModelFailed(failed) from error

    def _some(self, images: Images, key: UInt32Array, which: int) -> Images:
        """Return as many images as each evaluation looks at; ``which`` is the second word of the draw's counter."""
        wanted, total = self.task.eval_samples, len(images.labels)
        if wanted is None or wanted >= total:
            return images
        [chosen] = subsets(key, np.array([wanted]), np.array([total]), 0, which)
        return Images(images.pixels[chosen], images.labels[chosen])


class _Kept(NamedTuple):
    """What a client sends, kept until it arrives."""

    model: Float32Array  # [P]
    begun: Float32Array  # [P] the global model that it began with
    weight: int  # as ``TrainingJob.weight``
    noise: float  # as ``Conduct.noise``


class RealFederation(Asynchronous):
    """Trains real models on real images. See ``fl.training.jobs.Asynchronous``."""

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
        self._kept: dict[str, dict[tuple[int, int], _Kept]] = {task.service: {} for task in tasks}
        self._evaluate(self._learners.values())

    @property
    def kernels(self) -> Mapping[str, str]:
        return {name: learner.kernel for name, learner in self._learners.items()}

    def accuracy(self, service: str) -> float:
        return self._learners[service].accuracy

    def test_accuracy(self, service: str) -> float | None:
        return self._learners[service].test_accuracy

    def train_round(self, round_: int, jobs: Sequence[TrainingJob]) -> Mapping[str, TrainingOutcome]:
        return self._aggregate(round_, jobs, self._train(round_, _by_service(jobs)))

    def trial(self, round_: int, jobs: Sequence[TrainingJob]) -> Callable[[Sequence[TrainingJob]], float]:
        """See ``Federation.trial``; each client trains once, however many coalitions it is in."""
        by_service, before = _by_service(jobs), self.state()
        kept = {
            (service, job.client): update
            for service, trained in self._train(round_, by_service)
            for job, update in zip(by_service[service], trained, strict=True)
        }

        def accuracy(some: Sequence[TrainingJob]) -> float:
            [(service, own)] = _by_service(some).items()
            outcome = self._aggregate(round_, some, [(service, [kept[service, job.client] for job in own])])[service]
            self.restore(before)
            return outcome.accuracy

        return accuracy

    def _aggregate(
        self,
        round_: int,
        jobs: Sequence[TrainingJob],
        updates_of: Iterable[tuple[str, Iterable[tuple[Float32Array, float]]]],  # what ``_train`` yields of them
    ) -> dict[str, TrainingOutcome]:
        by_service = _by_service(jobs)
        losses: dict[tuple[str, int], float] = {}
        diverged: set[str] = set()  # the services that got an update that is not finite

        def models(
            service_jobs: Sequence[TrainingJob], trained: Iterable[tuple[Float32Array, float]]
        ) -> Iterator[Float32Array]:
            for job, (model, loss) in zip(service_jobs, trained, strict=True):
                losses[job.service, job.client] = loss
                model = self._sent(round_, job, model, loss, service_jobs)
                if not np.isfinite(model).all():
                    diverged.add(job.service)
                yield model

        for service, trained in updates_of:
            service_jobs = by_service[service]
            learner = self._learners[service]
            weights = [job.weight for job in service_jobs]
            noise = [job.conduct.noise if job.conduct else 0.0 for job in service_jobs]
            updates = Updates(models(service_jobs, trained), weights, learner.parameters, noise)
            if not self._renew(service, updates, f"service {service!r}, round {round_}", diverged):
                raise Diverged(service, round_, None, changed=_changed(service_jobs))
        self._evaluate(self._learners[service] for service in by_service)
        return {
            service: TrainingOutcome(
                self.accuracy(service),
                np.array([losses[service, job.client] for job in jobs if job.service == service]),
                self.test_accuracy(service),
            )
            for service in by_service
        }

    def _sent(
        self, round_: int, job: TrainingJob, model: Float32Array, loss: float, others: Sequence[TrainingJob]
    ) -> Float32Array:
        """Return what a client sends that has trained a model; ``others`` are the jobs of its service."""
        if not np.isfinite(loss):
            raise Diverged(job.service, round_, job.client, changed=_changed(others))
        if job.conduct:
            learner = self._learners[job.service]
            return sent_model(job.conduct, learner.parameters, model, learner.conduct, round_, job.client)
        return model

    def _renew(self, service: str, updates: Updates, where: str, diverged: Collection[str]) -> bool:
        """Make a service's new model of updates; return whether it is finite, unless the rule is at fault if not.

        ``diverged`` has the services that got an update that is not finite, once all of them have been taken.
        """
        learner = self._learners[service]
        new = aggregate(learner.task.aggregator, updates, where)
        if not np.isfinite(new).all():
            if service in diverged:
                return False
            rule = method(learner.task.aggregator, "aggregate")
            raise AggregatorError(
                f"aggregator {rule}, {where}: returned numbers that are not finite, though all updates are"
            )
        learner.parameters = new
        return True

    def begin(self, round_: int, jobs: Sequence[TrainingJob], slot: int | None = None) -> Mapping[str, FloatArray]:
        by_service, losses = _by_service(jobs), dict[tuple[str, int], float]()
        for service, trained in self._train(round_, by_service, slot):
            begun, own = self._learners[service].parameters, by_service[service]
            for job, (model, loss) in zip(own, trained, strict=True):
                sent = self._sent(round_, job, model, loss, own)
                losses[service, job.client] = loss
                noise = job.conduct.noise if job.conduct else 0.0
                self._kept[service][round_, job.client] = _Kept(sent, begun, job.weight, noise)
        return {
            service: np.array([losses[service, job.client] for job in jobs if job.service == service])
            for service in by_service
        }

    def aggregate(self, service: str, model: int, deliveries: Sequence[Delivery], trigger: Trigger) -> None:
        learner, diverged = self._learners[service], set[str]()
        # by client, as a sum must not depend on who came first
        taken = sorted(deliveries, key=lambda it: (it.client, it.round))
        kept = [self._kept[service].pop((it.round, it.client)) for it in taken]

        def models() -> Iterator[Float32Array]:
            for of, it in zip(kept, taken, strict=True):
                if not np.isfinite(of.model).all():
                    diverged.add(service)
                yield model_of(trigger, of.model, of.begun, learner.parameters, it.staleness)

        updates = Updates(models(), [of.weight for of in kept], learner.parameters, [of.noise for of in kept])
        if not self._renew(service, updates, f"service {service!r}, model {model}", diverged):
            raise Diverged(service, max(it.round for it in taken), None)

    def evaluate(self, services: Sequence[str]) -> None:
        self._evaluate(self._learners[service] for service in services)

    def forget(self, service: str, updates: Sequence[Delivery] | None = None) -> None:
        kept = self._kept[service]
        for key in list(kept) if updates is None else [(it.round, it.client) for it in updates]:
            kept.pop(key, None)

    def state(self) -> dict[str, AnyArray]:
        """See ``Federation.state``: each service's global model [P], its accuracy, and its test accuracy, if any.

        The arrays of its aggregator's ``state`` are among them, and what clients will send that are still at work.
        """
        models = {f"{name}/model": learner.parameters for name, learner in self._learners.items()}
        models |= {f"{name}/accuracy": np.array([learner.accuracy]) for name, learner in self._learners.items()}
        for name, learner in self._learners.items():
            models |= {
                f"{name}/aggregator/{key}": array for key, array in checkpoint_arrays(learner.task.aggregator).items()
            }
        for name, kept in self._kept.items():
            begun: dict[int, int] = {}  # the places of the models that clients began with, which several share
            for (round_, client), of in kept.items():
                place = begun.setdefault(id(of.begun), len(begun))
                models[f"{name}/kept/{round_}/{client}"] = of.model
                models[f"{name}/kept/{round_}/{client}/of"] = np.array([of.weight, of.noise, place])
                models[f"{name}/begun/{place}"] = of.begun
        return models | {
            f"{name}/test_accuracy": np.array([learner.test_accuracy])
            for name, learner in self._learners.items()
            if learner.test_accuracy is not None
        }

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        for name, learner in self._learners.items():
            learner.parameters = np.array(state[f"{name}/model"])
            learner.accuracy = float(state[f"{name}/accuracy"][0])
            if learner.test is not None:
                learner.test_accuracy = float(state[f"{name}/test_accuracy"][0])
            own = f"{name}/aggregator/"
            learner.task.aggregator.restore({key[len(own) :]: state[key] for key in state if key.startswith(own)})
            begun = {key: np.array(state[key]) for key in state if key.startswith(f"{name}/begun/")}
            now = learner.parameters  # which others will begin with, too
            begun = {key: now if np.array_equal(it, now) else it for key, it in begun.items()}
            self._kept[name] = {}
            for key in state:
                if key.startswith(f"{name}/kept/") and not key.endswith("/of"):
                    round_, client = map(int, key.split("/")[-2:])
                    weight, noise, place = state[f"{key}/of"].tolist()
                    of = _Kept(np.array(state[key]), begun[f"{name}/begun/{int(place)}"], int(weight), noise)
                    self._kept[name][round_, client] = of

    def close(self) -> None:
        if self._pool:
            self._pool.shutdown(cancel_futures=True)

    def _train(
        self, round_: int, by_service: Mapping[str, Sequence[TrainingJob]], slot: int | None = None
    ) -> Iterator[tuple[str, Iterable[tuple[Float32Array, float]]]]:
        """Train all jobs; yield each service, and its jobs' parameters [P] and mean losses in their order.

        They come one at a time, so that FedAvg adds each at once: a model can be large, and a round have many clients.
        """

        def train(job: TrainingJob) -> tuple[Float32Array, float]:
            learner = self._learners[job.service]
            data = learner.client_data(self._seed, round_, job, slot)
            with (
                learner.trainer() as trainer,
                learner.engine.drawing("training", self._seed, round_, job.client, job.service),
                learner.blaming(f"to train client {job.client} in round {round_}"),
            ):
                if learner.proximal:
                    return train_near(trainer, learner.parameters, data, learner.task.regime, learner.proximal)
                return trainer.train(learner.parameters, *data, learner.task.regime)

        one_by_one = [
            job for name, service_jobs in by_service.items() if not self._learners[name].batched for job in service_jobs
        ]
        trained: Iterator[tuple[Float32Array, float]] = map(train, one_by_one)
        if self._pool:
            held = sum(self._learners[job.service].parameters.nbytes for job in one_by_one)
            # The longest first, so that no worker is left with a long one at the end. All models are then held until
            # their turn comes, and few of them are if they are trained in that order.
            first = sorted(one_by_one, key=self._work, reverse=True) if held <= MOST_HELD else one_by_one
            started = {(job.service, job.client): self._pool.submit(train, job) for job in first}
            trained = (started.pop((job.service, job.client)).result() for job in one_by_one)
        for service, service_jobs in by_service.items():
            learner = self._learners[service]
            if learner.batched:
                clients = [learner.client_data(self._seed, round_, job, slot) for job in service_jobs]
                with learner.blaming(f"to train in round {round_}"):
                    yield service, learner.batched.train(learner.parameters, clients, learner.task.regime)
            else:
                yield service, islice(trained, len(service_jobs))

    def _work(self, job: TrainingJob) -> int:
        epochs = (job.conduct or HONEST).epochs or self._learners[job.service].task.regime.local_epochs
        return job.size * epochs

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
            with (
                learner.trainer() as trainer,
                learner.engine.drawing("evaluation", self._seed, learner.task.service, part[1].start),
                learner.blaming("in evaluation"),
            ):
                return trainer.correct(learner.parameters, images.pixels[part[1]], images.labels[part[1]])

        parts: list[tuple[int, slice]] = []
        hits = [0] * len(wanted)
        for place, (learner, images) in enumerate(wanted):
            if learner.batched:
                with learner.blaming("in evaluation"):
                    hits[place] = learner.batched.correct(learner.parameters, images.pixels, images.labels)
            else:
                chunk = learner.engine.evaluation_chunk
                parts += [(place, slice(first, first + chunk)) for first in range(0, len(images.labels), chunk)]
        counts = self._pool.map(correct, parts) if self._pool else map(correct, parts)  # in the order of the parts
        for (place, _), count in zip(parts, counts, strict=True):
            hits[place] += count
        return [count / len(images.labels) for count, (_, images) in zip(hits, wanted, strict=True)]


def _changed(jobs: Iterable[TrainingJob]) -> bool:
    """Return whether clients add noise to their updates or scale them."""
    return any(it.conduct is not None and (it.conduct.noise > 0 or it.conduct.update_scale != 1) for it in jobs)


def _by_service(jobs: Iterable[TrainingJob]) -> dict[str, list[TrainingJob]]:
    """Return the jobs of each service by client, as a sum must not depend on whom a policy chose first."""
    jobs_of: dict[str, list[TrainingJob]] = defaultdict(list)
    for job in sorted(jobs, key=lambda job: job.client):
        jobs_of[job.service].append(job)
    return jobs_of
