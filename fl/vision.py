"""torchvision, the one place that imports it, and the download of data sets through it.

torchvision's wheels register their compiled operators against the torch build they were made with. Beside a CPU-only
torch that fails, and then ``import torchvision`` stops with "operator torchvision::nms does not exist": it declares fake
versions of two operators, ``nms`` and ``qnms``, whose schemas nobody has defined. Data sets need neither. When, and only
when, the import fails in that way, the two schemas are defined here and the import is tried again.
"""

import shutil
import tempfile
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from fl.idx import DatasetError

_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
_KEPT: list[Any] = []
"""Holds the operator library: torch drops its schemas when it is collected."""


def torchvision() -> ModuleType:
    """Import torchvision's data sets, beside any build of torch."""
    try:
        return import_module("torchvision.datasets")
    except RuntimeError as error:
        if "operator torchvision::nms does not exist" not in str(error):
            raise
    import sys

    import torch

    library = torch.library.Library("torchvision", "FRAGMENT")
    for schema in _SCHEMAS:
        library.define(schema)
    _KEPT.append(library)
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[name]  # left behind, half imported, by the first attempt
    return import_module("torchvision.datasets")


def download(kind: str, root: Path, **options: Any) -> None:
    """Download a data set into torchvision's layout below ``root``; torchvision checks its archive's checksum.

    Args:
        kind: torchvision's class, such as ``FashionMNIST``.
        root: the data folder.
        options: further arguments of the class, such as ``split``.

    Raises:
        DatasetError: it can't be downloaded, or the folder can't be written.
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
        # Beside its final place, and moved there when whole: an interrupted download leaves no half data set.
        with tempfile.TemporaryDirectory(dir=root, prefix=".download-") as scratch:
            getattr(torchvision(), kind)(root=scratch, download=True, **options)
            for file in sorted((Path(scratch) / kind / "raw").iterdir()):
                if file.suffix not in {".gz", ".zip"} or not file.with_suffix("").exists():
                    target = root / kind / "raw" / file.name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.move(file, target)
    except (OSError, RuntimeError) as error:
        raise DatasetError(
            f"{root / kind}: can't be downloaded ({error}); put torchvision's raw files there by hand, or set "
            "FLMARKET_DATA to a folder that holds them"
        ) from error
