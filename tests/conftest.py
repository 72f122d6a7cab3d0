"""What all tests share."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real_images() -> Path:
    """The folder with the real MNIST, Fashion-MNIST and EMNIST images; tests that need them skip where it is not."""
    folder = os.environ.get("FLMARKET_DATA")
    if not folder:
        pytest.skip("real images: set FLMARKET_DATA to a folder that holds them in torchvision's layout")
    missing = [name for name in ("MNIST", "FashionMNIST", "EMNIST") if not (Path(folder) / name / "raw").is_dir()]
    if missing:
        pytest.skip(f"real images: {folder} has no {', '.join(missing)}")
    return Path(folder)
