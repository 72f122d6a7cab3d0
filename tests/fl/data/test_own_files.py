"""Data sets in a user's own files: folders of pictures, .npz files, and the line that says what is wrong with one."""

import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from fl.data import own_files
from fl.data.dataset import Shape
from fl.data.own_dataset import NAMES
from fl.data.partition import Iid, Partition
from fl.data.registry import DatasetError, dataset, info, is_path, load

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


@pytest.mark.parametrize("kept", ["size", "size and time"])
def test_a_picture_that_is_replaced_in_place_is_read_again(kept: str, tmp_path: Path) -> None:
    place = folder_of(tmp_path / "pets")
    before, known = load(str(place)), (place / "cat/2.png").stat()
    other = tmp_path / "other.png"
    picture(4).save(other)
    content = other.read_bytes()
    (place / "cat/2.png").write_bytes(content)
    if kept == "size and time":
        os.utime(place / "cat/2.png", ns=(known.st_atime_ns, known.st_mtime_ns))
    after = load(str(place))
    assert firsts(before.train_images) != firsts(after.train_images)
    assert before.digests["train-images"] != after.digests["train-images"]


def test_who_owns_which_images_follows_a_file_that_is_replaced(tmp_path: Path) -> None:
    for labels in (ARRAYS["labels"], [1, 0, 2, 2, 1, 0, 0, 1]):
        name = npz(tmp_path, labels=labels)
        pools = Partition(name, Iid(), 2).pools(0)
        assert pools.label.tolist() == load(name).train_labels[pools.images].tolist()


@pytest.mark.parametrize("suffix", ["JPG", "jfif", "jpe", "gif", "tif", "webp"])
def test_pictures_are_known_by_all_their_suffixes(suffix: str, tmp_path: Path) -> None:
    place = folder_of(tmp_path / "pets")
    picture(9).save(place / "cat" / f"more.{suffix}")
    assert load(str(place)).images == {"train": {"cat": 6, "dog": 5}, "test": {"cat": 1, "dog": 1}}


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
    "no split": (lambda place: remove(place, "test"), "has no images in '{}/train' (.bmp, .gif, .jfif, "),
    "an empty class": (lambda place: (place / "train/emu").mkdir(), "has no images in '{}/train/emu' (.bmp, .gif, "),
    "a class that is only tested on": (
        lambda place: (place / "test/emu").mkdir(),
        "has the class 'emu' in 'test', but not in 'train'",
    ),
    "one class": (
        lambda place: (remove(place, "train/dog"), remove(place, "test/dog")),
        "its training labels must be numbered from 0 without a gap, at least two; they are 0",
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
        "{}/train/cat/0.png: its pixels are of the kind 'RGBA', or transparent; save it as 8-bit grey or RGB",
    ),
    "sixteen bits": (
        lambda place: Image.fromarray(np.zeros((4, 5), np.uint16)).save(place / "train/cat/0.png"),
        "{}/train/cat/0.png: its pixels are of the kind 'I;16', or transparent; save it as 8-bit grey or RGB",
    ),
    "a damaged picture": (broken, "{}/train/dog/3.png: "),
    "a picture of a kind that is not read": (
        lambda place: (place / "train/cat/9.heic").write_bytes(b"heic"),
        "{}/train/cat/9.heic: is not a picture of a kind that is read (.bmp, ",
    ),
    "a picture without a suffix": (
        lambda place: picture(9).save(place / "train/cat/9", "PNG"),
        "{}/train/cat/9: is not a picture of a kind that is read (.bmp, ",
    ),
    "a pipe": (lambda place: os.mkfifo(place / "train/cat/9.png"), "{}/train/cat/9.png: is not a picture of a kind "),
    "a folder in that of a class": (
        lambda place: folder_of(place / "train/cat/kittens"),
        "{}/train/cat/kittens: is a folder in that of a class ",
    ),
    "a third split": (
        lambda place: folder_of(place / "val"),
        "has 'val' beside 'train' and 'test', which would not be read; move it away, or ",
    ),
    "a picture of no split": (
        lambda place: picture(1).save(place / "1.png"),
        "has '1.png' beside 'train' and 'test', ",
    ),
    "a picture of no class": (
        lambda place: picture(1).save(place / "train/1.png"),
        "{}/train/1.png: lies beside the folders of classes; put it into one, or move it away",
    ),
    "pages": (
        lambda place: picture(0).save(place / "train/cat/9.tif", save_all=True, append_images=[picture(1)]),
        "{}/train/cat/9.tif: it holds 2 pictures, of which one would be read; ",
    ),
    "frames": (
        lambda place: picture(0).save(place / "train/cat/9.gif", save_all=True, append_images=[picture(50)]),
        "{}/train/cat/9.gif: it holds 2 pictures, of which one would be read; ",
    ),
    "text": (
        lambda place: (place / "train/dog/3.png").write_text("hello"),
        "{}/train/dog/3.png: cannot identify image file ",
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
        assert str(caught.value).startswith(f"data set {str(place)!r}: {problem.format(place)}")


def test_pictures_that_no_memory_holds_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_files, "MOST_BYTES", 16 * 60 - 1)
    with pytest.raises(DatasetError, match="its 16 images of 3 x 4 x 5 take more than 8 GiB"):
        load(str(split_of(tmp_path / "pets")))


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("{0}/nowhere", "cannot be read: No such file or directory: {0}/nowhere"),
        ("{}/file.txt/", "is neither a folder nor an .npz file"),
        ("{}/empty", "holds no folders in 'empty'; sort its images into one folder for each class"),
        ("{}/split:0.2", "is split into 'train' and 'test' already; leave out :0.2"),
        ("{}/one", "has only one image in 'cat'; a class that is to be split needs at least two"),
        ("{}/whole:1.5", "the share of test images must lie between 0 and 1, not 1.5"),
        ("{}/whole:0", "the share of test images must lie between 0 and 1, not 0"),
        ("{}/whole:1.2.3", "the share of test images must lie between 0 and 1, not 1.2.3"),
        ("~nobody-of-this-name/pets", "~nobody-of-this-name/pets: the home folder that '~' stands for is not known; "),
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
    assert str(caught.value).startswith(f"data set {name!r}: {problem.format(tmp_path)}")


# Arrays in a file

IMAGES = np.arange(8 * 60).reshape(8, 3, 4, 5).astype(np.uint8)
ARRAYS = {"pixels": IMAGES, "labels": [0, 1, 2, 0, 1, 2, 0, 1], "split": ["train"] * 6 + ["test"] * 2}


def npz(place: Path, **changed: Any) -> str:
    path = place / "shapes.npz"
    np.savez(path, **{key: value for key, value in (ARRAYS | changed).items() if value is not None})
    return str(path)


@pytest.mark.parametrize(
    "split", [ARRAYS["split"], [0] * 6 + [1] * 2, np.arange(8) > 5], ids=["words", "numbers", "booleans"]
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


@pytest.mark.parametrize(
    ("names", "validation"),
    [(NAMES[0], "val_images"), (NAMES[1], "x_val")],
    ids=["as MedMNIST has them", "as Keras has them"],
)
def test_an_npz_with_the_names_of_others_loads(names: tuple[str, ...], validation: str, tmp_path: Path) -> None:
    labels = np.array(ARRAYS["labels"])[:, np.newaxis]
    parts = dict(zip(names, (IMAGES[:6], labels[:6], IMAGES[6:], labels[6:]), strict=True))
    np.savez(tmp_path / "named.npz", **parts)
    found = load(str(tmp_path / "named.npz"))
    assert found.digests == load(npz(tmp_path)).digests
    np.savez(tmp_path / "named.npz", **parts, **{validation: IMAGES[:3]})
    found = load(str(tmp_path / "named.npz"))
    assert found.sizes == (
        "6 training images (2 of each of 3 classes), 2 test images (0: 1, 1: 1, 2: 0), each 3 x 4 x 5 (channels x "
        f"height x width, channels first), standardised; 3 of {validation} are not used"
    )


def test_images_in_arrays_of_other_names_are_counted(tmp_path: Path) -> None:
    assert load(npz(tmp_path, extra=IMAGES[:5], note="drawn")).unused == {"extra": 5}


def test_an_npz_may_hold_features(tmp_path: Path) -> None:
    rows = np.arange(16, dtype=np.float32).reshape(8, 2)
    table = {"features": rows, "labels": ARRAYS["labels"], "split": ARRAYS["split"]}
    np.savez(tmp_path / "table.npz", **table, standardise=False)
    found = load(str(tmp_path / "table.npz"))
    np.testing.assert_array_equal(found.train_images, rows[:6, np.newaxis, np.newaxis])
    assert found.sizes.endswith("each 2 features, as they are")
    rows[7, 1] = np.nan
    np.savez(tmp_path / "table.npz", **table)
    with pytest.raises(DatasetError, match=r"table\.npz': its test features hold nan \(row 1, column 1, from 0\)"):
        load(str(tmp_path / "table.npz"))


def test_an_npz_says_where_channels_stand(tmp_path: Path) -> None:
    images = np.arange(8 * 27, dtype=np.uint8).reshape(8, 3, 3, 3)
    with pytest.raises(DatasetError, match="which leaves open whether channels come first"):
        load(npz(tmp_path, pixels=images))
    last = load(npz(tmp_path, pixels=images, channels="last"))
    np.testing.assert_array_equal(last.train_images, images[:6].transpose(0, 3, 1, 2))


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


def bomb(place: Path) -> str:
    """A few kilobytes that say they are 16 GiB."""
    path = Path(npz(place))
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive, archive.open("more.npy", "w") as member:
        member.write(b"0")
        archive.getinfo("labels.npy").file_size = 1 << 34
    return str(path)


def pipe(place: Path) -> str:
    os.mkfifo(place / "pipe.npz")
    return str(place / "pipe.npz")


ONE_EACH = "must have the shape [8], one for each image"
WORDS = "must be 'train' or 'test' (or 0 or 1) for each image"


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (lambda place: npz(place, split=None), "cannot be read: it has no split; it must hold pixels, labels and "),
        (lambda place: npz(place, labels=[0, 1, 2]), f"cannot be read: its labels {ONE_EACH}, not [3]; it must "),
        (lambda place: npz(place, labels=1), f"cannot be read: its labels {ONE_EACH}, not []; it must hold "),
        (lambda place: npz(place, split=["train"] * 9), f"cannot be read: its split {ONE_EACH}, not [9]; it must "),
        (lambda place: npz(place, split=["train"] * 7 + ["val"]), f"cannot be read: its split {WORDS}, not 'val'; it "),
        (lambda place: npz(place, split=np.linspace(0, 1, 8)), f"cannot be read: its split {WORDS}, not 0.142857"),
        (lambda place: npz(place, split=["train"] * 8), "cannot be read: no image is in the split 'test'; it must "),
        (lambda place: npz(place, split=[1] * 8), "cannot be read: no image is in the split 0; it must hold "),
        (
            lambda place: npz(place, labels=np.array([{"a": 1}] * 8, dtype=object)),
            "cannot be read: its labels must be an array of numbers or words, not of Python objects; it must hold ",
        ),
        (lambda place: npz(place, pixels=IMAGES / 255), "its training images must be uint8 [n, channels, height, "),
        (cut, "cannot be read: it is not an .npz file; it must hold pixels, labels and split (docs/data.md)"),
        (text, "cannot be read: it is not an .npz file; it must hold pixels, labels and split (docs/data.md)"),
        (bomb, "cannot be read: its arrays take more than 8 GiB; it must hold "),
        (pipe, "is neither a folder nor an .npz file"),
        (spoilt, "cannot be read: Bad CRC-32 for file 'pixels.npy'"),
        (lambda place: f"{npz(place)}:0.2", "is split already; leave out :0.2"),
    ],
)
def test_what_is_wrong_with_an_npz_is_said_with_its_name(
    made: Callable[[Path], str], problem: str, tmp_path: Path
) -> None:
    name = made(tmp_path)
    with pytest.raises(DatasetError) as caught:
        load(name)
    assert str(caught.value).startswith(f"data set {name!r}: {problem}")


def test_a_registered_name_goes_before_a_path() -> None:
    dataset("shapes.npz")(lambda: (IMAGES, ARRAYS["labels"], IMAGES, ARRAYS["labels"]))
    assert info("shapes.npz").source == "plug-in"
