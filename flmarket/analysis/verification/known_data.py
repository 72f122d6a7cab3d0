"""The data sets that a run learned from, as far as known without their images: labels, and numbers of images."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fl.data.dataset import DatasetInfo
from fl.data.registry import DATASETS, info, is_path, load
from fl.data.validation_split import held_out
from flmarket.core.errors import InputError
from scenarios.build import backend_of
from scenarios.file.schema import Scenario
from scenarios.plugin_files import require_same_plugins


@dataclass(frozen=True)
class KnownData:
    """The data sets of a run's services."""

    scenario: Scenario  # the one that was played
    meta: Mapping[str, Any]  # what meta.json records

    @cached_property
    def datasets(self) -> Mapping[str, DatasetInfo]:
        """The descriptions of the services' data sets, except of plug-ins that are not loaded or have changed since."""
        found = {}
        for name in dict.fromkeys(service.dataset for service in self.scenario.services):
            thing = f"{DATASETS.kind} {name}"
            try:
                require_same_plugins({key: value for key, value in self.meta["plugins"].items() if key == thing}, "")
                if not is_path(name) or self._same_images(name):
                    found[name] = info(name)
            except (InputError, KeyError, TypeError, AttributeError):
                continue
        return found

    def _same_images(self, path: str) -> bool:
        return bool(self.meta["data"][path]["sha256"] == dict(load(path).digests))

    @cached_property
    def labels(self) -> Mapping[str, int]:
        """L of the services' data sets, which decides bids (eq. 1): of what is in ``datasets``, else as recorded.

        A user's own files may have changed since, or be gone.
        """
        return {**self.meta["labels"], **{name: found.labels for name, found in self.datasets.items()}}

    @cached_property
    def tested(self) -> Mapping[str, int]:
        """The number of test images behind an accuracy on them, by service; only where that is known."""
        return {name: self._looked_at(known.test_size) for name, known in self._sizes.items()}

    @cached_property
    def measured(self) -> Mapping[str, int]:
        """The number of images behind each ``accuracy``: validation images where some are held out, else ``tested``."""
        if not self.scenario.split:
            return self.tested
        share = self.scenario.training.validation
        return {name: self._looked_at(held_out(known.train_size, share)) for name, known in self._sizes.items()}

    def _looked_at(self, images: int) -> int:
        return min(self.scenario.training.eval_samples or images, images)

    @cached_property
    def _sizes(self) -> Mapping[str, DatasetInfo]:
        """The data sets that models are trained on, by service; only those whose sizes are known to be the run's."""
        if not backend_of(self.scenario).trains:
            return {}
        found = {service.name: self.datasets.get(service.dataset) for service in self.scenario.services}
        return {name: known for name, known in found.items() if known is not None and self._official(known)}

    def _official(self, dataset: DatasetInfo) -> bool:
        """Whether the run's files of a data set have as many images as is known of it."""
        try:
            return dataset.source != "download" or self.meta["data"][dataset.name]["official"] is True
        except (KeyError, TypeError):
            return False
