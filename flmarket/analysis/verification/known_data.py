"""The data sets that a run learned from, as far as known without their images: labels, and numbers of images."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fl.arrays import FloatArray
from fl.data.dataset import DatasetInfo
from fl.data.registry import DATASETS, info, is_path, load
from fl.data.validation_split import held_out
from flmarket.core.errors import InputError
from scenarios.build import backend_of
from scenarios.file.schema import Scenario
from scenarios.plugin_files import require_same_plugins


def is_same(meta: Mapping[str, Any], thing: str) -> bool:
    """Whether a thing such as ``data set NAME`` is, if it is a plug-in's, here and the one of the run."""
    try:
        require_same_plugins({key: value for key, value in meta["plugins"].items() if key == thing}, "")
    except InputError:
        return False
    return True


@dataclass(frozen=True)
class KnownData:
    """The data sets of a run's services."""

    scenario: Scenario  # the one that was played
    meta: Mapping[str, Any]  # what meta.json records

    @cached_property
    def datasets(self) -> Mapping[str, DatasetInfo]:
        """The descriptions of the services' data sets, except of those that are not here or have changed since.

        Of a user's own files and of unofficial ones, these are looked at.
        """
        found = {}
        for name in dict.fromkeys(service.dataset for service in self.scenario.services):
            recorded = self.meta["data"].get(name)
            with suppress(InputError):
                if is_path(name) or (recorded and not recorded["official"]):
                    own = load(name, download=False)
                    if recorded and recorded["sha256"] == dict(own.digests):
                        found[name] = own.info
                elif is_same(self.meta, f"{DATASETS.kind} {name}"):
                    found[name] = info(name)
        return found

    @cached_property
    def labels(self) -> list[int]:
        """[M] L of the services' data sets, which decides bids (eq. 1): of what is in ``datasets``, else as recorded.

        A user's own files may have changed since, or be gone.
        """
        return [self.labels_of(service.dataset) for service in self.scenario.services]

    def labels_of(self, name: str) -> int:
        known: Mapping[str, int] = self.meta["labels"]
        if name not in self.datasets and name not in known:
            raise InputError(f"meta.json: labels: has no {name!r}")
        return self.datasets[name].labels if name in self.datasets else known[name]

    @cached_property
    def tested(self) -> FloatArray:
        """[M] the number of test images behind an accuracy on them; NaN where it is not known."""
        return self._images(lambda known: known.test_size)

    @cached_property
    def measured(self) -> FloatArray:
        """[M] the number of images behind each ``accuracy``: validation images where some are held out."""
        if not self.scenario.split:
            return self.tested
        return self._images(lambda known: held_out(known.train_size, self.scenario.training.validation))

    def _images(self, size: Callable[[DatasetInfo], int]) -> FloatArray:
        """Return [M] how many images of a part of each data set are looked at, if it is known to be the run's."""
        found = np.full(len(self.scenario.services), np.nan)
        for m, service in enumerate(self.scenario.services if backend_of(self.scenario).trains else ()):
            known = self.datasets.get(service.dataset)
            if known is not None:
                found[m] = min(self.scenario.training.eval_samples or size(known), size(known))
        return found
