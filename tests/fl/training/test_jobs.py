"""The error of a training that diverges."""

import pickle

import pytest

from fl.training.jobs import Diverged
from flmarket.core.errors import RunError


@pytest.mark.parametrize(("client", "what"), [(7, "the loss of client 7"), (None, "the global model")])
def test_diverged_names_service_round_and_client_and_what_to_do(client: int | None, what: str) -> None:
    error = Diverged("mnist", 3, client)
    assert isinstance(error, RunError)
    assert str(error) == (
        f"service 'mnist': training diverged in round 3: {what} is not finite; lower learning_rate (or local_epochs, "
        "momentum) for its data set"
    )


def test_diverged_travels_between_processes() -> None:
    copy = pickle.loads(pickle.dumps(Diverged("mnist", 3, 7)))  # noqa: S301 - our own bytes
    assert (copy.service, copy.round, copy.client) == ("mnist", 3, 7)
    assert str(copy) == str(Diverged("mnist", 3, 7))
