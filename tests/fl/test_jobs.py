"""What is said when training diverges."""

import pickle

import pytest

from fl.errors import RunError
from fl.jobs import Diverged


@pytest.mark.parametrize(
    ("client", "who"), [(7, "the training of client 7"), (None, "the training of the global model")]
)
def test_diverged_names_service_round_and_client_and_what_to_do(client: int | None, who: str) -> None:
    error = Diverged("mnist", 3, client)
    assert isinstance(error, RunError)
    assert str(error).startswith("service 'mnist' diverged in round 3")
    assert who in str(error)
    assert "lower learning_rate" in str(error)


def test_diverged_travels_between_processes() -> None:
    copy = pickle.loads(pickle.dumps(Diverged("mnist", 3, 7)))  # noqa: S301 - our own bytes
    assert (copy.service, copy.round, copy.client) == ("mnist", 3, 7)
    assert str(copy) == str(Diverged("mnist", 3, 7))
