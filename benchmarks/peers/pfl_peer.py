"""A job in Apple's pfl-research, written like its own benchmarks."""

from typing import Any

import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
from pfl.metrics import Metrics, Weighted
from pfl.model.pytorch import PyTorchModel
from torch import nn
from torch.nn import functional as F  # noqa: N812
from workload import Clock, evaluate, job, network, read

CLOCK = Clock()


class Model(nn.Module):
    """The network, with the two methods that pfl requires."""

    def __init__(self) -> None:
        super().__init__()
        self.network = network()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.network(x)

    def loss(self, x: torch.Tensor, y: torch.Tensor, *, is_train: bool = True) -> torch.Tensor:
        return F.cross_entropy(self(x), y)

    def metrics(self, x: torch.Tensor, y: torch.Tensor, *, is_train: bool = False) -> dict[str, Any]:
        return {"loss": Weighted(0.0, len(y))}


class Evaluation(TrainingProcessCallback):
    """Evaluates the global model after each round, as the plain loop does."""

    def after_central_iteration(self, aggregate_metrics: Any, model: Any, *, central_iteration: int) -> Any:
        CLOCK.round_ended(evaluate(model.pytorch_model, *read()[1]))
        return False, Metrics()


def images(user: int) -> Dataset:
    """Return a client's images in a new order in each round, as the others draw it: pfl takes them as they are."""
    x, y = read()[0][user]
    order = torch.randperm(len(y))
    return Dataset(raw_data=[x[order], y[order]])


if __name__ == "__main__":
    clients, _ = read()
    sampler = get_user_sampler("random", list(range(len(clients))))
    data = FederatedDataset(images, sampler)
    module = Model()
    model = PyTorchModel(module, torch.optim.SGD, torch.optim.SGD(module.parameters(), lr=1.0))
    algorithm = FederatedAveraging()
    algorithm.run(
        NNAlgorithmParams(
            central_num_iterations=job().rounds,
            evaluation_frequency=10**9,
            train_cohort_size=job().chosen,
            val_cohort_size=0,
        ),
        SimulatedBackend(training_data=data, val_data=None),
        model,
        NNTrainHyperParams(local_num_epochs=job().epochs, local_learning_rate=job().rate, local_batch_size=job().batch),
        NNEvalHyperParams(local_batch_size=None),
        callbacks=[Evaluation()],
    )
    CLOCK.report("pfl")
