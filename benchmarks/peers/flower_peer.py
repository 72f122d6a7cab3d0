"""A job in Flower's simulation (Ray), written like its own quickstart for PyTorch."""

from collections import OrderedDict
from typing import Any

import torch
from flwr.client import ClientApp, NumPyClient
from flwr.common import Context, ndarrays_to_parameters
from flwr.server import ServerApp, ServerAppComponents, ServerConfig
from flwr.server.strategy import FedAvg
from flwr.simulation import run_simulation
from workload import Clock, evaluate, job, network, read, train_client

CLOCK = Clock()


def get_weights(model: torch.nn.Module) -> list[Any]:
    return [value.numpy() for value in model.state_dict().values()]


def set_weights(model: torch.nn.Module, weights: list[Any]) -> None:
    names = model.state_dict().keys()
    model.load_state_dict(OrderedDict((n, torch.tensor(w)) for n, w in zip(names, weights, strict=True)))


class Client(NumPyClient):
    def __init__(self, client: Any) -> None:
        self.client, self.model = client, network()

    def fit(self, parameters: list[Any], config: dict[str, Any]) -> tuple[list[Any], int, dict[str, Any]]:
        torch.set_num_threads(1)
        set_weights(self.model, parameters)
        train_client(self.model, self.client, epochs=job().epochs, batch_size=job().batch, rate=job().rate)
        return get_weights(self.model), len(self.client[1]), {}


def client_fn(context: Context) -> Any:
    return Client(read()[0][int(context.node_config["partition-id"])]).to_client()


def server_fn(context: Context) -> ServerAppComponents:
    model, clients = network(), len(read()[0])

    def evaluate_fn(round_: int, weights: list[Any], config: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        set_weights(model, weights)
        accuracy = evaluate(model, *read()[1])
        if round_:  # 0 is the untrained model
            CLOCK.round_ended(accuracy)
        return 0.0, {}

    strategy = FedAvg(
        fraction_fit=job().chosen / clients,
        min_fit_clients=job().chosen,
        min_available_clients=clients,
        fraction_evaluate=0.0,
        initial_parameters=ndarrays_to_parameters(get_weights(model)),
        evaluate_fn=evaluate_fn,
    )
    return ServerAppComponents(strategy=strategy, config=ServerConfig(num_rounds=job().rounds))


if __name__ == "__main__":
    run_simulation(
        server_app=ServerApp(server_fn=server_fn),
        client_app=ClientApp(client_fn=client_fn),
        num_supernodes=len(read()[0]),
        backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0.0}},
    )
    CLOCK.report("flwr")
