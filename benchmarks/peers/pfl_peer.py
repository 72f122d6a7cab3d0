"""The reference workload in Apple's pfl-research, written like its own benchmarks."""

from typing import Any

import numpy as np
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
from torch.nn import functional as F  # noqa: N812
from workload import BATCH, CHOSEN, RATE, WARM_UP, Clock, LeNet, evaluate, read, rounds

CLOCK = Clock()


class Model(LeNet):
    """The network, with the two methods that pfl requires."""

    def loss(self, x: torch.Tensor, y: torch.Tensor, *, is_train: bool = True) -> torch.Tensor:
        return F.cross_entropy(self(x), y)

    def metrics(self, x: torch.Tensor, y: torch.Tensor, *, is_train: bool = False) -> dict[str, Any]:
        return {"loss": Weighted(0.0, len(y))}


class Evaluation(TrainingProcessCallback):
    """Evaluates the global model after each round, as the plain loop does."""

    def after_central_iteration(self, aggregate_metrics: Any, model: Any, *, central_iteration: int) -> Any:
        self.accuracy = evaluate(model.pytorch_model, *read()[1])
        CLOCK.round_ended()
        return False, Metrics()


if __name__ == "__main__":
    np.random.seed(0)  # noqa: NPY002 - pfl draws from it
    clients, _ = read()
    sampler = get_user_sampler("random", list(range(len(clients))))
    data = FederatedDataset(lambda user: Dataset(raw_data=list(clients[user])), sampler)
    network = Model()
    model = PyTorchModel(network, torch.optim.SGD, torch.optim.SGD(network.parameters(), lr=1.0))
    callback = Evaluation()
    algorithm = FederatedAveraging()
    algorithm.run(
        NNAlgorithmParams(
            central_num_iterations=WARM_UP + rounds(),
            evaluation_frequency=10**9,
            train_cohort_size=CHOSEN,
            val_cohort_size=0,
        ),
        SimulatedBackend(training_data=data, val_data=None),
        model,
        NNTrainHyperParams(local_num_epochs=1, local_learning_rate=RATE, local_batch_size=BATCH),
        NNEvalHyperParams(local_batch_size=None),
        callbacks=[callback],
    )
    CLOCK.report(callback.accuracy)
