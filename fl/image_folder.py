"""Data sets in a folder: pictures, sorted into a folder for each class.

    pets/train/cat/1.png            or, without a split,        pets/cat/1.png
    pets/test/cat/2.png                                         pets/cat/2.png

Classes are numbered in the order of their names. Where there is no split, a share of each class is tested on: pictures
at even distances in the order of their names, so that the split is the same everywhere. Other files and folders are
not looked at.
"""

import warnings
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np

from fl.arrays import AnyArray, Labels, Pixels
from fl.dataset import DatasetError, Shape
from fl.image_sizes import require_small
from fl.own_arrays import MOST_LABELS

SUFFIXES = {".bmp", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}
SPLITS = ("train", "test")
SHARE = Fraction(1, 5)
"""The share of each class that is tested on, where the folder has no split and the scenario names none."""

_FORMATS = ("BMP", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
_GREY = {"1", "L"}
_COLOUR = {"P", "RGB"}

Pictures = list[tuple[Path, int]]  # files of pictures, and the class of each


def read(
    folder: Path,
    share: Fraction | None,  # of each class that is tested on; None for ``SHARE``, or the folder's own split
) -> tuple[Pixels, Labels, Pixels, Labels, list[str]]:
    """Return training images, training labels, test images, test labels, and the names of the classes."""
    try:
        classes, train, test = _split(folder, share)
    except OSError as error:
        raise DatasetError(f"cannot be read: {error.strerror}: {error.filename}") from error
    if len(classes) > MOST_LABELS:
        raise DatasetError(f"has {len(classes)} classes; there can be at most {MOST_LABELS}")
    images = _pixels(folder, [path for path, _ in (*train, *test)])
    labels = np.array([label for _, label in (*train, *test)], dtype=np.uint8)
    n = len(train)
    return images[:n], labels[:n], images[n:], labels[n:], classes


def _split(folder: Path, share: Fraction | None) -> tuple[list[str], Pictures, Pictures]:
    split = [name for name in SPLITS if (folder / name).is_dir() and _folders(folder / name)]
    if not split:
        classes = _folders(folder)
        if not classes:
            raise DatasetError("holds no folders; sort its images into one folder for each class")
        train: Pictures = []
        test: Pictures = []
        for label, name in enumerate(classes):
            for place, path in enumerate(files := _pictures(folder, name)):
                (test if place in _tested(len(files), share or SHARE, name) else train).append((path, label))
        return classes, train, test
    if missing := [name for name in SPLITS if name not in split]:
        raise DatasetError(
            f"has the folder {split[0]!r}, but in {missing[0]!r} there are no folders of classes; add them, or put the "
            "classes into the folder itself to have it split"
        )
    if share is not None:
        raise DatasetError(f"is split into 'train' and 'test' already; leave out :{float(share):g}")
    classes = _folders(folder / "train")
    if unknown := [name for name in _folders(folder / "test") if name not in classes]:
        raise DatasetError(f"has the class {unknown[0]!r} in 'test', but not in 'train'")
    found = [
        [
            (path, label)
            for label, name in enumerate(classes)
            if (folder / part / name).is_dir()
            for path in _pictures(folder, f"{part}/{name}")
        ]
        for part in SPLITS
    ]
    return classes, found[0], found[1]


def _folders(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))


def _pictures(folder: Path, place: str) -> list[Path]:
    found = sorted(
        path for path in (folder / place).iterdir() if path.suffix.lower() in SUFFIXES and not path.name.startswith(".")
    )
    if not found:
        raise DatasetError(f"has no images in {place!r} ({', '.join(sorted(SUFFIXES))})")
    return found


def _tested(count: int, share: Fraction, name: str) -> set[int]:
    """Return the places of the pictures of a class that are tested on: at least one, and not all."""
    if count < 2:
        raise DatasetError(f"has only one image in {name!r}; a class that is to be split needs at least two")
    wanted = min(count - 1, max(1, round(count * share)))
    return {(2 * k + 1) * count // (2 * wanted) for k in range(wanted)}


def _pixels(folder: Path, paths: Sequence[Path]) -> Pixels:
    """Return the pictures as one array [n, channels, height, width]."""
    found: Pixels | None = None
    for place, path in enumerate(paths):
        name = path.relative_to(folder).as_posix()
        picture = _picture(path, name, len(paths))
        if found is None:
            found = np.empty((len(paths), *picture.shape), dtype=np.uint8)
        elif picture.shape != found.shape[1:]:
            first = paths[0].relative_to(folder).as_posix()
            raise DatasetError(
                f"its images must have one shape: {first} is {Shape(*found.shape[1:])}, {name} is "
                f"{Shape(*picture.shape)}"
            )
        found[place] = picture
    assert found is not None  # noqa: S101 - no class is empty
    return found


def _picture(path: Path, name: str, count: int) -> AnyArray:
    """Return one picture [channels, height, width], after a look at its header."""
    from PIL import Image  # comes with torchvision

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of pictures with absurdly many pixels, and of damaged ones
            with Image.open(path, formats=_FORMATS) as image:
                mode = _mode(image.mode, name)
                require_small(count, (len(mode), image.height, image.width), f"images like {name}")
                pixels = np.asarray(image.convert(mode))
    except DatasetError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise DatasetError(f"{name} has too many pixels: {error}") from error
    except Exception as error:  # decoders raise all kinds
        raise DatasetError(f"{name} cannot be read as an image: {error}; replace or remove it") from error
    return pixels[np.newaxis] if mode == "L" else pixels.transpose(2, 0, 1)


def _mode(found: str, name: str) -> str:
    """Return ``L`` (grey) or ``RGB``, as which a picture's pixels can be read without loss."""
    if found in _GREY:
        return "L"
    if found in _COLOUR:
        return "RGB"
    raise DatasetError(f"{name} has pixels of the kind {found!r}; save it as 8-bit grey or RGB")
