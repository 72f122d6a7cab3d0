"""A job in BlazeFL, written like its own benchmark: threads where Python has no lock, else one client after another."""

import sys
from enum import StrEnum
from typing import Any

import torch
from blazefl.contrib import FedAvgBaseClientTrainer, FedAvgBaseServerHandler, FedAvgThreadPoolClientTrainer
from torch.utils.data import DataLoader, TensorDataset
from workload import Clock, evaluate, job, network, read

CLOCK = Clock()


class Name(StrEnum):
    MODEL = "model"


class Models:
    """The interface by which BlazeFL builds a network."""

    def select_model(self, model_name: Name) -> torch.nn.Module:
        return network()


class Images:
    """The interface that BlazeFL requires of a partitioned data set."""

    def __init__(self) -> None:
        self.parts = [TensorDataset(*client) for client in read()[0]]

    def get_dataloader(self, type_: Any, cid: int, batch_size: int, generator: Any) -> Any:
        return DataLoader(self.parts[cid], batch_size=batch_size, shuffle=True, generator=generator)


if __name__ == "__main__":
    clients, data = len(read()[0]), Images()
    shared: dict[str, Any] = {
        "model_selector": Models(), "model_name": Name.MODEL, "dataset": data, "device": "cpu", "num_clients": clients,
        "batch_size": job().batch, "seed": torch.seed() % 2**31,
    }  # fmt: skip
    server = FedAvgBaseServerHandler(**shared, global_round=job().rounds, sample_ratio=job().chosen / clients)
    if getattr(sys, "_is_gil_enabled", lambda: True)():
        trainer = FedAvgBaseClientTrainer(**shared, epochs=job().epochs, lr=job().rate)
    else:
        cores = torch.multiprocessing.cpu_count()
        trainer = FedAvgThreadPoolClientTrainer(
            **shared, epochs=job().epochs, lr=job().rate, num_parallels=min(cores, job().chosen)
        )
    for _ in range(job().rounds):
        chosen = server.sample_clients()
        trainer.local_process(server.downlink_package(), chosen)
        for package in trainer.uplink_package():
            server.load(package)
        CLOCK.round_ended(evaluate(server.model, *read()[1]))
    CLOCK.report("blazefl")
