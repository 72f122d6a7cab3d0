"""Data sets in a folder: pictures, sorted into a folder for each class. Classes are numbered in the order of names.

``pets/train/cat/1.png`` and ``pets/test/cat/2.png``, or without a split ``pets/cat/1.png``. Whatever else lies there
is refused, so that no picture is left out without a word; but for hidden files and notes.
"""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np

from fl.arrays import AnyArray, IntArray, Pixels
from fl.data.dataset import DatasetError, Shape
from fl.data.own_dataset import GivenArrays

SUFFIXES = {
    ".bmp", ".gif", ".jfif", ".jpe", ".jpeg", ".jpg", ".pgm", ".png", ".pnm", ".ppm", ".tif", ".tiff", ".webp"
}  # fmt: skip
_NOTES = {".csv", ".db", ".html", ".ini", ".json", ".md", ".txt", ".xml"}  # that may lie among pictures
MOST_BYTES = 1 << 33  # of all decoded images together: they are kept in memory
_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
_MODES = {"1": "L", "L": "L", "P": "RGB", "RGB": "RGB"}  # as which pixels are read without loss
_SHARE = "0.2"  # of each class that is tested on, where the folder has no split and the scenario names none

Pictures = list[tuple[Path, int]]  # files of pictures, and the class of each


def read(
    folder: Path,
    share: str | None,  # of each class that is tested on, as it is written
) -> GivenArrays:
    """Return training images and labels, and test images and labels."""
    if (folder / "train").is_dir() and (folder / "test").is_dir():
        if others := [path.name for path in _entries(folder) if path.name not in ("train", "test")]:
            raise DatasetError(
                f"has {others[0]!r} beside 'train' and 'test', which would not be read; move it away, or merge it into "
                "one of them: validation images are taken from the training images (training.validation)"
            )
        if share is not None:
            raise DatasetError(f"is split into 'train' and 'test' already; leave out :{share}")
        classes = _classes(folder / "train")
        if unknown := sorted({*_classes(folder / "test")} - {*classes}):
            raise DatasetError(f"has the class {unknown[0]!r} in 'test', but not in 'train'")
        train, test = (
            [
                (path, label)
                for label, name in enumerate(classes)
                if (folder / part / name).is_dir()
                for path in _pictures(folder / part / name)
            ]
            for part in ("train", "test")
        )
    else:
        classes = _classes(folder)
        train, test = _split(folder, classes, share or _SHARE)
    images = _pixels(folder, [path for path, _ in (*train, *test)])
    arrays = images[: len(train)], _labels(train), images[len(train) :], _labels(test)
    return GivenArrays(arrays, "first", classes)


def _split(folder: Path, classes: Sequence[str], share: str) -> tuple[Pictures, Pictures]:
    """Return training and test pictures: of each class, those at even distances in the order of names are tested on."""
    try:
        part = Fraction(share)
    except ValueError:
        part = Fraction(0)
    if not 0 < part < 1:
        raise DatasetError(f"the share of test images must lie between 0 and 1, not {share}")
    train: Pictures = []
    test: Pictures = []
    for label, name in enumerate(classes):
        files = _pictures(folder / name)
        if (count := len(files)) < 2:
            raise DatasetError(f"has only one image in {name!r}; a class that is to be split needs at least two")
        wanted = min(count - 1, max(1, round(count * part)))
        tested = {(2 * k + 1) * count // (2 * wanted) for k in range(wanted)}
        for place, path in enumerate(files):
            (test if place in tested else train).append((path, label))
    return train, test


def _classes(folder: Path) -> list[str]:
    entries = _entries(folder)
    if not any(path.is_dir() for path in entries):
        raise DatasetError(f"holds no folders in {folder.name!r}; sort its images into one folder for each class")
    if others := [path for path in entries if not path.is_dir()]:
        raise DatasetError(f"{others[0]}: lies beside the folders of classes; put it into one, or move it away")
    return [path.name for path in entries]


def _pictures(folder: Path) -> list[Path]:
    entries = _entries(folder)
    found = [path for path in entries if path.suffix.lower() in SUFFIXES and path.is_file()]
    if not found:
        raise DatasetError(f"has no images in {str(folder)!r} ({', '.join(sorted(SUFFIXES))})")
    if others := sorted({*entries} - {*found}):
        what = "a folder in that of a class" if others[0].is_dir() else "not a picture of a kind that is read"
        raise DatasetError(f"{others[0]}: is {what} ({', '.join(sorted(SUFFIXES))}); convert it, or move it away")
    return found


def _entries(folder: Path) -> list[Path]:
    """Return the folders, and the files that are neither hidden nor notes, in the order of their names."""
    return sorted(
        path
        for path in folder.iterdir()
        if not path.name.startswith(".") and (path.suffix.lower() not in _NOTES or path.is_dir())
    )


def _labels(pictures: Pictures) -> IntArray:
    return np.array([label for _, label in pictures])


def _pixels(folder: Path, paths: Sequence[Path]) -> Pixels:
    """Return the pictures as one array [n, channels, height, width]."""
    first = _picture(paths[0])
    if len(paths) * first.size > MOST_BYTES:
        raise DatasetError(f"its {len(paths):,} images of {Shape(*first.shape)} take more than 8 GiB")
    images = np.empty((len(paths), *first.shape), np.uint8)
    for place, path in enumerate(paths):
        picture = _picture(path)
        if picture.shape != first.shape:
            raise DatasetError(
                f"its images must have one shape: {paths[0].relative_to(folder)} is {Shape(*first.shape)}, "
                f"{path.relative_to(folder)} is {Shape(*picture.shape)}"
            )
        images[place] = picture
    return images


def _picture(path: Path) -> AnyArray:
    """Return one picture [channels, height, width]."""
    try:
        return _decoded(path)
    except Exception as error:  # decoders raise all kinds
        raise DatasetError(f"{path}: {error}; save it as 8-bit grey or RGB, or remove it") from error


def _decoded(path: Path) -> AnyArray:
    from PIL import Image  # comes with torchvision

    with Image.open(path, formats=_FORMATS) as image:
        mode = _MODES.get(image.mode)
        if mode is None or "transparency" in image.info:
            raise ValueError(f"its pixels are of the kind {image.mode!r}, or transparent")
        if (count := getattr(image, "n_frames", 1)) > 1:
            raise ValueError(f"it holds {count} pictures, of which one would be read")
        pixels = np.asarray(image.convert(mode))
    return pixels[np.newaxis] if mode == "L" else pixels.transpose(2, 0, 1)
