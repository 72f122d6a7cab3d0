"""A job in FedLab's standalone simulation."""

from importlib.util import find_spec
from typing import Any

import torch
from workload import Clock, evaluate, job, network, read

if find_spec("torchvision") and not hasattr(torch.ops.torchvision, "nms"):
    # FedLab imports torchvision, for data sets that are not used here. A torchvision that was built for CUDA does not
    # load its operators with a torch that was built for CPUs, and then these two are missing.
    OPERATORS = torch.library.Library("torchvision", "FRAGMENT")
    for operator in ("nms", "qnms"):
        OPERATORS.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

from fedlab.contrib.algorithm.basic_client import SGDSerialClientTrainer
from fedlab.contrib.algorithm.basic_server import SyncServerHandler
from fedlab.core.standalone import StandalonePipeline
from torch.utils.data import DataLoader, TensorDataset

CLIENTS, TEST = read()
CLOCK = Clock()


class Images:
    """The interface that FedLab requires of a federated data set."""

    def __init__(self) -> None:
        self.parts = [TensorDataset(*client) for client in CLIENTS]

    def get_dataloader(self, client: int, batch_size: int) -> Any:
        return DataLoader(self.parts[client], batch_size=batch_size, shuffle=True)


class Pipeline(StandalonePipeline):
    def evaluate(self) -> None:
        CLOCK.round_ended(evaluate(self.handler.model, *TEST))


if __name__ == "__main__":
    model = network()
    handler = SyncServerHandler(model, job().rounds, job().chosen / len(CLIENTS))
    trainer = SGDSerialClientTrainer(model, len(CLIENTS))
    trainer.setup_dataset(Images())
    trainer.setup_optim(job().epochs, job().batch, job().rate)
    Pipeline(handler, trainer).main()
    CLOCK.report("fedlab")
