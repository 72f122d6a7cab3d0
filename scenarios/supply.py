"""Whether this machine's copy of a data set has the images that a scenario's clients and its validation split need."""

from itertools import product

from fl.datasets import Dataset, DatasetError, data_root
from fl.partition import largest_count
from fl.split import held_out, left_at_least
from scenarios.file.schema import Scenario


def require_supply(scenario: Scenario, dataset: Dataset) -> None:
    """Refuse a copy that has too few images of a label; the scenario was checked against the official data set."""
    found, share = dataset.info, scenario.training.validation
    left = left_at_least(found.rarest_label, share)
    for size, emd in product(scenario.clients.data_size, scenario.clients.emds(found.labels)):
        needed = largest_count(size, emd, found.labels)
        if needed > left:
            kept = f", of which training.validation leaves {left}" if left < found.rarest_label else ""
            raise DatasetError(
                f"data set {found.name!r}: the files in {data_root()} have {found.rarest_label} images of their rarest "
                f"label{kept}; a client with {size} images of EMD {emd} can need {needed}; put the official files "
                f"there, or lower clients.data_size{' or clients.emd' if scenario.clients.emd else ''}"
            )
    if share and not held_out(found.train_size, share):
        raise DatasetError(
            f"data set {found.name!r}: the files in {data_root()} have {found.train_size} training images, of which "
            f"training.validation = {share} holds out none; put the official files there, or set it to 0"
        )
