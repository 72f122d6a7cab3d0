"""Real training, from a service's task to its new global model; light until torch is needed.

* backend (``fl.backends``): what a market's federation is, real training or fitted curves.
* federation (``federation``): trains the jobs of a round, averages them (FedAvg) and evaluates the new models.
* engine (``trainers``): chooses the code that trains a model on a data set, the kernel.
* trainer (``fused``, ``local``): trains one client after another, or in torch all clients of a service at once.
* model (``networks``): the networks, by name; a user's own is tried before it is used (``trial``).
"""
