"""A job in the plain loop, one client after another."""

import random

from workload import Clock, federated_round, job, network, read

if __name__ == "__main__":
    clock, (clients, test), model = Clock(), read(), network()
    local = {"epochs": job().epochs, "batch_size": job().batch, "rate": job().rate}
    for _ in range(job().rounds):
        clock.round_ended(federated_round(model, random.sample(clients, job().chosen), test, **local))
    clock.report("torch")
