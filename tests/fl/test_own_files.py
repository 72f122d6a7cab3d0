"""Data sets in a user's own files: folders of pictures, .npz files, and the line that says what is wrong with one."""

import io
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from fl.dataset import Shape
from fl.datasets import DatasetError, dataset, info, is_path, load
from fl.image_sizes import require_small

CLASSES = ("cat", "dog")


def picture(k: int, mode: str = "RGB", size: tuple[int, int] = (5, 4)) -> Image.Image:
    """A picture, 5 wide and 4 high, that is darkest at the left."""
    rows = np.tile(np.arange(size[0], dtype=np.uint8) * 10 + k, (size[1], 1))
    return Image.merge("RGB", [Image.fromarray(rows + c) for c in range(3)]).convert(mode)


def folder_of(place: Path, *, each: int = 6, **how: Any) -> Path:
    """A folder with six pictures of each class, and what else may lie in one."""
    for label, name in enumerate(CLASSES):
        (place / name).mkdir(parents=True)
        for k in range(each):
            picture(label * 100 + k, **how).save(place / name / f"{k}.png")
        (place / name / "notes.txt").write_text("not a picture")
    (place / ".hidden").mkdir()
    return place


def split_of(place: Path) -> Path:
    folder_of(place / "train")
    folder_of(place / "test", each=2)
    return place


def firsts(images: np.ndarray) -> list[int]:
    """The first pixel of each image, which says which picture it was."""
    return [int(image[0, 0, 0]) for image in images]


def test_a_folder_with_a_split_loads_as_it_lies(tmp_path: Path) -> None:
    name = str(split_of(tmp_path / "pets"))
    found, known = load(name), info(name)
    assert (known.name, known.shape, known.labels, known.source) == (name, Shape(3, 4, 5), 2, "file")
    assert (known.train_size, known.test_size, known.rarest_label) == (12, 4, 6)
    assert known.description == "images of 2 classes: cat, dog"
    assert found.train_images.shape == (12, 3, 4, 5)
    assert found.train_labels.tolist() == [0] * 6 + [1] * 6
    assert firsts(found.train_images) == [0, 1, 2, 3, 4, 5, 100, 101, 102, 103, 104, 105]
    assert firsts(found.test_images) == [0, 1, 100, 101]
    expected = np.asarray(picture(3)).transpose(2, 0, 1)  # channels first, upright
    np.testing.assert_array_equal(found.train_images[3], expected)
    assert not found.official
    assert list(found.digests) == ["train-images", "train-labels", "test-images", "test-labels"]


def test_a_folder_without_a_split_is_split_the_same_everywhere(tmp_path: Path) -> None:
    name = str(folder_of(tmp_path / "pets", each=10))
    fifth = load(name)  # by default
    assert firsts(fifth.test_images) == [2, 7, 102, 107]
    assert firsts(fifth.train_images) == [0, 1, 3, 4, 5, 6, 8, 9, 100, 101, 103, 104, 105, 106, 108, 109]
    assert firsts(load(f"{name}:0.3").test_images) == [1, 5, 8, 101, 105, 108]
    for share, tested in (("0.01", 1), ("0.5", 5), ("0.99", 9)):  # at least one, and not all
        assert load(f"{name}:{share}").test_labels.tolist() == [0] * tested + [1] * tested


@pytest.mark.parametrize(
    ("mode", "channels"), [("L", 1), ("1", 1), ("RGB", 3), ("P", 3)], ids=["grey", "bits", "colour", "palette"]
)
def test_pictures_of_all_kinds_that_lose_nothing(mode: str, channels: int, tmp_path: Path) -> None:
    name = str(folder_of(tmp_path / "pets", mode=mode))
    assert info(name).shape == Shape(channels, 4, 5)


def test_a_folder_is_read_again_when_pictures_come_or_go(tmp_path: Path) -> None:
    place = folder_of(tmp_path / "pets")
    before = load(str(place))
    assert load(str(place)) is before
    picture(9).save(place / "cat" / "9.png")
    after = load(str(place))
    assert after.info.train_size == before.info.train_size + 1
    assert {key for key, digest in after.digests.items() if digest != before.digests[key]} >= {"train-images"}


def test_a_relative_path_starts_at_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder_of(tmp_path / "pets")
    monkeypatch.chdir(tmp_path)
    assert load("./pets").info.name == "./pets"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load("~/pets").train_images.tobytes() == load("pets/").train_images.tobytes()


@pytest.mark.parametrize(
    ("name", "path"), [("pets/", True), ("/a/b:0.3", True), ("a.npz", True), ("C:\\pets", True), ("mnist", False)]
)
def test_a_name_with_a_slash_or_of_an_npz_is_a_path(name: str, path: bool) -> None:
    assert is_path(name) == path


# What is wrong with a folder


def broken(place: Path) -> None:
    whole = (place / "train/dog/3.png").read_bytes()
    (place / "train/dog/3.png").write_bytes(whole[: len(whole) // 2])


def remove(place: Path, folder: str) -> None:
    for path in sorted((place / folder).rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (place / folder).rmdir()


FOLDERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "no split": (
        lambda place: remove(place, "test"),
        "has the folder 'train', but in 'test' there are no folders of classes; add them, or put the classes into the "
        "folder itself to have it split",
    ),
    "an empty class": (
        lambda place: (place / "train/emu").mkdir(),
        "has no images in 'train/emu' (.bmp, .jpeg, .jpg, .pgm, .png, .ppm, .tif, .tiff, .webp)",
    ),
    "a class that is only tested on": (
        lambda place: (place / "test/emu").mkdir(),
        "has the class 'emu' in 'test', but not in 'train'",
    ),
    "one class": (
        lambda place: (remove(place, "train/dog"), remove(place, "test/dog")),
        "all its training labels are 0; there must be at least two labels",
    ),
    "mixed sizes": (
        lambda place: picture(0, size=(5, 5)).save(place / "test/cat/1.png"),
        "its images must have one shape: train/cat/0.png is 3 x 4 x 5, test/cat/1.png is 3 x 5 x 5",
    ),
    "grey among colour": (
        lambda place: picture(0, "L").save(place / "train/dog/2.png"),
        "its images must have one shape: train/cat/0.png is 3 x 4 x 5, train/dog/2.png is 1 x 4 x 5",
    ),
    "transparency": (
        lambda place: picture(0, "RGBA").save(place / "train/cat/0.png"),
        "train/cat/0.png has pixels of the kind 'RGBA'; save it as 8-bit grey or RGB",
    ),
    "sixteen bits": (
        lambda place: Image.fromarray(np.zeros((4, 5), np.uint16)).save(place / "train/cat/0.png"),
        "train/cat/0.png has pixels of the kind 'I;16'; save it as 8-bit grey or RGB",
    ),
    "a damaged picture": (broken, "train/dog/3.png cannot be read as an image: "),
    "text": (
        lambda place: (place / "train/dog/3.png").write_text("hello"),
        "train/dog/3.png cannot be read as an image: cannot identify image file ",
    ),
    "too many pixels": (
        lambda place: Image.new("RGB", (2000, 1000)).save(place / "train/cat/0.png"),
        "images like train/cat/0.png have too many pixels: 3 x 1000 x 2000 are 6,000,000 numbers, more than 1,048,576; "
        "make them smaller",
    ),
    "an absurd number of pixels": (
        lambda place: Image.new("1", (20000, 20000)).save(place / "train/cat/0.png"),
        "train/cat/0.png has too many pixels: Image size (400000000 pixels) exceeds limit of ",
    ),
}


@pytest.mark.parametrize(("change", "problem"), FOLDERS.values(), ids=FOLDERS)
def test_what_is_wrong_with_a_folder_is_said_with_its_name(
    change: Callable[[Path], object], problem: str, tmp_path: Path
) -> None:
    change(place := split_of(tmp_path / "pets"))
    for use in (info, load):
        with pytest.raises(DatasetError) as caught:
            use(str(place))
        assert str(caught.value).startswith(f"data set {str(place)!r}: {problem}")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("{}/nowhere", "no such folder"),
        ("{}/file.txt/", "is neither a folder nor an .npz file"),
        ("{}/empty", "holds no folders; sort its images into one folder for each class"),
        ("{}/split:0.2", "is split into 'train' and 'test' already; leave out :0.2"),
        ("{}/one", "has only one image in 'cat'; a class that is to be split needs at least two"),
        ("{}/whole:1.5", "the share of test images must lie between 0 and 1, not 1.5"),
        ("{}/whole:0", "the share of test images must lie between 0 and 1, not 0"),
        ("{}/whole:1.2.3", "the share of test images must lie between 0 and 1, not 1.2.3"),
        (
            "{}/a,b",
            "a path consists of letters, digits, spaces and . _ - ~ / \\ :, and does not start with a space, '-' or "
            "':'; rename the folder, or link to it",
        ),
    ],
)
def test_what_is_wrong_with_a_path_is_said(name: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_text("hello")
    (tmp_path / "empty").mkdir()
    folder_of(tmp_path / "one", each=1)
    folder_of(tmp_path / "whole")
    split_of(tmp_path / "split")
    name = name.format(tmp_path)
    with pytest.raises(DatasetError) as caught:
        load(name)
    assert str(caught.value) == f"data set {name!r}: {problem}"


# Arrays in a file

IMAGES = np.arange(8 * 60).reshape(8, 3, 4, 5).astype(np.uint8)
ARRAYS = {"pixels": IMAGES, "labels": [0, 1, 2, 0, 1, 2, 0, 1], "split": ["train"] * 6 + ["test"] * 2}


def npz(place: Path, **changed: Any) -> str:
    path = place / "shapes.npz"
    np.savez(path, **{key: value for key, value in (ARRAYS | changed).items() if value is not None})
    return str(path)


@pytest.mark.parametrize(
    "split",
    [ARRAYS["split"], [0] * 6 + [1] * 2, np.arange(8) > 5],
    ids=["words", "numbers", "booleans"],
)
@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "compressed"])
def test_an_npz_loads(split: Any, compressed: bool, tmp_path: Path) -> None:
    name = npz(tmp_path, split=split)
    if compressed:
        np.savez_compressed(name, **ARRAYS | {"split": split})
    found = load(name)
    assert (found.info.shape, found.info.labels, found.info.source) == (Shape(3, 4, 5), 3, "file")
    np.testing.assert_array_equal(found.train_images, IMAGES[:6])
    np.testing.assert_array_equal(found.test_images, IMAGES[6:])
    assert (found.train_labels.tolist(), found.test_labels.tolist()) == ([0, 1, 2, 0, 1, 2], [0, 1])


def test_one_channel_may_be_left_out(tmp_path: Path) -> None:
    assert info(npz(tmp_path, pixels=IMAGES[:, 0])).shape == Shape(1, 4, 5)


def huge(place: Path) -> str:
    """An .npz whose header announces more than any memory holds."""
    header = io.BytesIO()
    shape = (10**9, 3, 100, 100)
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": shape})
    name = npz(place)
    with zipfile.ZipFile(place / "huge.npz", "w") as target, zipfile.ZipFile(name) as source:
        target.writestr("pixels.npy", header.getvalue())
        for other in ("labels.npy", "split.npy"):
            target.writestr(other, source.read(other))
    return str(place / "huge.npz")


def headed(place: Path, **headers: bytes) -> str:
    """An .npz of which some arrays have other beginnings."""
    with zipfile.ZipFile(npz(place)) as source:
        content = {name: source.read(name) for name in source.namelist()}
    path = place / "headed.npz"
    with zipfile.ZipFile(path, "w") as target:
        for name, data in content.items():
            target.writestr(name, headers.get(name.removesuffix(".npy"), data))
    return str(path)


def header(text: str) -> bytes:
    """The beginning of an array, of version 1.0, that says something else than NumPy writes."""
    line = text.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(line).to_bytes(2, "little") + line


def unnamed(place: Path) -> str:
    """An archive whose members are named without ``.npy``, as numpy.savez never names them."""
    with zipfile.ZipFile(npz(place)) as source, zipfile.ZipFile(place / "unnamed.npz", "w") as target:
        for name in source.namelist():
            target.writestr(name.removesuffix(".npy"), source.read(name))
    return str(place / "unnamed.npz")


def cut(place: Path) -> str:
    path = Path(npz(place))
    path.write_bytes(path.read_bytes()[:-30])
    return str(path)


def text(place: Path) -> str:
    (place / "text.npz").write_text("hello")
    return str(place / "text.npz")


def spoilt(place: Path) -> str:
    path = Path(npz(place))
    content = bytearray(path.read_bytes())
    content[200] ^= 255
    path.write_bytes(content)
    return str(path)


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (
            lambda place: npz(place, split=None),
            "lacks split; a data set is the arrays pixels, labels and split, and the file has pixels, labels",
        ),
        (lambda place: npz(place, pixels=IMAGES / 255), "its pixels must be uint8, from 0 to 255, not float64"),
        (
            lambda place: npz(place, pixels=IMAGES.reshape(8, 60)),
            "its pixels must have the shape [n, channels, height, width], or [n, height, width] for one channel, with "
            "no dimension 0, not [8, 60]",
        ),
        (
            lambda place: npz(place, pixels=np.zeros((8, 32, 32, 4), np.uint8)),
            "its training images have the shape [6, 32, 32, 4]; channels come before height and width: "
            "images.transpose(0, 3, 1, 2)",
        ),
        (lambda place: npz(place, labels=[0, 1, 2]), "its labels have the length 3, for 8 images"),
        (
            unnamed,
            "lacks pixels, labels, split; a data set is the arrays pixels, labels and split, and the file has none",
        ),
        (
            lambda place: headed(
                place, labels=header("{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000000000,)}")
            ),
            "its labels have the length 1,000,000,000,000,000, for 8 images",
        ),
        (lambda place: npz(place, split=["train"] * 9), "its split has the length 9, for 8 images"),
        (
            lambda place: npz(place, labels=np.eye(8)),
            "its labels must have the shape [n], one for each image, not [8, 8]",
        ),
        (lambda place: npz(place, labels=np.ones(8)), "its training labels must be integers, not float64"),
        (
            lambda place: npz(place, labels=[0, 3, 2, 0, 3, 2, 0, 3]),
            "no training image has the label 1, but one has 3; number the labels from 0 without a gap",
        ),
        (
            lambda place: npz(place, split=["train"] * 7 + ["val"]),
            "its split must be 'train' or 'test' (or 0 or 1) for each image, not 'val'",
        ),
        (
            lambda place: npz(place, split=np.linspace(0, 1, 8)),
            "its split must be 'train' or 'test' (or 0 or 1) for each image, not float64",
        ),
        (
            lambda place: npz(place, split=["train"] * 8),
            "no image is in the split 'test'; its split must name both 'train' and 'test'",
        ),
        (
            lambda place: npz(place, labels=np.array([{"a": 1}] * 8, dtype=object)),
            "its labels are Python objects, which are never loaded; save an array of one type",
        ),
        (
            huge,
            "its images have too many pixels: 1,000,000,000 images of 3 x 100 x 100 take 27940 GiB, more than 8; make "
            "them smaller or fewer",
        ),
        (cut, "is not an .npz file: File is not a zip file; write it with numpy.savez"),
        (text, "is not an .npz file: File is not a zip file; write it with numpy.savez"),
        (spoilt, "is not an .npz file: Bad CRC-32 for file 'pixels.npy'; write it with numpy.savez"),
        (lambda place: str(place / "nowhere.npz"), "no such file"),
        (lambda place: f"{npz(place)}:0.2", "is split already; leave out :0.2"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_npz_is_said_with_its_name(
    made: Callable[[Path], str], problem: str, tmp_path: Path
) -> None:
    name = made(tmp_path)
    with pytest.raises(DatasetError) as caught:
        load(name)
    assert str(caught.value) == f"data set {name!r}: {problem}"


@pytest.mark.parametrize("text", ["{'descr': '|u1', 'shape': (", "{[]: 1}", "{'shape': 1}", "\x00"])
@pytest.mark.parametrize("array", ["pixels", "labels", "split"])
def test_a_header_that_no_parser_understands_is_said_to_be_unreadable(array: str, text: str, tmp_path: Path) -> None:
    """The header of an array is a Python literal, and what its parser raises is its own business."""
    name = headed(tmp_path, **{array: header(text)})
    with pytest.raises(DatasetError) as caught:
        load(name)
    assert str(caught.value).startswith(f"data set {name!r}: cannot be read: ")
    assert str(caught.value).endswith("; write it again with numpy.savez")


def test_a_path_that_cannot_be_looked_at_is_said_to_be_unreadable(tmp_path: Path) -> None:
    name = f"{tmp_path}/{'a' * 300}/"
    with pytest.raises(DatasetError) as caught:
        load(name)
    assert str(caught.value) == f"data set {name!r}: cannot be read: File name too long"


def test_a_home_folder_that_is_not_known_is_said(tmp_path: Path) -> None:
    name = "~nobody-of-this-name/pets"
    with pytest.raises(DatasetError) as caught:
        load(name)
    assert str(caught.value) == (
        f"data set {name!r}: {name}: the home folder that '~' stands for is not known; write it out"
    )


def test_images_that_no_memory_holds_are_refused_by_their_header() -> None:
    require_small(1_000, (3, 224, 224))
    with pytest.raises(DatasetError, match=r"100,000 images of 3 x 224 x 224 take 14 GiB, more than 8"):
        require_small(100_000, (3, 224, 224))


def test_a_registered_name_goes_before_a_path(tmp_path: Path) -> None:
    dataset("shapes.npz")(lambda: (IMAGES, ARRAYS["labels"], IMAGES, ARRAYS["labels"]))
    assert info("shapes.npz").source == "plug-in"


def test_reading_files_needs_no_torch(tmp_path: Path) -> None:
    code = (
        "import sys; from fl.datasets import load; [load(name) for name in sys.argv[1:]];"
        "print([m for m in ('torch', 'torchvision', 'scipy', 'sklearn') if m in sys.modules])"
    )
    command = [sys.executable, "-c", code, npz(tmp_path), str(folder_of(tmp_path / "pets"))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
