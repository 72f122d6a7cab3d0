"""CIFAR and SVHN: files in exactly the published formats, damaged ones, and downloads. No pickle is ever loaded."""

import hashlib
import io
import pickle
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat

from fl import downloaded, vision
from fl.dataset import Dataset, Shape
from fl.datasets import DatasetError, info, load
from fl.engine import Engine
from fl.regime import Regime
from support.downloads import put_files, serving

COUNTS = {"data_batch": 20, "test_batch": 30, "train_32x32": 40, "test_32x32": 20}
"""Images in each file of a tiny data set, by the beginning of its name."""


def colours(count: int, labels: int) -> tuple[np.ndarray, np.ndarray]:
    """Images [n, 3, 32, 32] and labels: image k is labelled k modulo L, with dots at the upper right, other in each
    channel."""
    classes = np.arange(count) % labels
    images = np.zeros((count, 3, 32, 32), dtype=np.uint8)
    images[:, :, 5, 20] = 1 + classes[:, None] + [[0, 10, 20]]
    return images, classes.astype(np.uint8)


def of_file(file: str) -> int:
    return next(count for name, count in COUNTS.items() if file.startswith(name))


def records(count: int, labels: int) -> bytes:
    """CIFAR's binary file: a label, then red, green and blue rows."""
    images, classes = colours(count, labels)
    return np.hstack([classes[:, None], images.reshape(count, -1)]).tobytes()


def mat(count: int, **changed: Any) -> bytes:
    """SVHN's file: images [height, width, channels, n]; the digit 0 is labelled 10."""
    images, classes = colours(count, 10)
    labels = np.where(classes == 0, 10, classes)[:, None].astype(np.uint8)
    return mat_of(**({"X": images.transpose(2, 3, 1, 0), "y": labels} | changed))


def mat_of(**arrays: Any) -> bytes:
    file = io.BytesIO()
    savemat(file, arrays, do_compression=True)
    return b"MATLAB 5.0 MAT-file".ljust(116) + file.getvalue()[116:]  # without the second in which it was made


def content(name: str, file: str) -> bytes:
    if name == "svhn":
        return mat(of_file(file))
    return records(of_file(file), info(name).labels)


def tiny(name: str) -> dict[str, bytes]:
    return {file: content(name, file) for file in vision.FILES[name].files}


def put(root: Path, name: str, *, compress: bool = False) -> Path:
    return put_files(root / vision.FILES[name].folder, tiny(name), compress=compress)


NAMES = ["cifar-10", "svhn"]
SIZES = {"cifar-10": (100, 30), "svhn": (40, 20)}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("compress", [False, True], ids=["plain", "gz"])
def test_every_format_loads_upright_in_colour_with_labels_from_zero(name: str, compress: bool, tmp_path: Path) -> None:
    put(tmp_path, name, compress=compress)
    loaded = load(name, tmp_path, download=False)
    assert info(name).shape == loaded.info.shape == Shape(3, 32, 32)
    for images, labels, count in (
        (loaded.train_images, loaded.train_labels, SIZES[name][0]),
        (loaded.test_images, loaded.test_labels, SIZES[name][1]),
    ):
        assert images.shape == (count, 3, 32, 32)
        assert (images.dtype, labels.dtype) == (np.uint8, np.uint8)
        assert images.flags.c_contiguous
        expected = [np.arange(of_file(file)) % info(name).labels for file in vision.FILES[name].files]
        np.testing.assert_array_equal(
            labels, np.concatenate(expected[:-1] if count == SIZES[name][0] else expected[-1:])
        )
        for channel in range(3):
            np.testing.assert_array_equal(images[:, channel, 5, 20], 1 + labels + 10 * channel)
        assert np.count_nonzero(images) == 3 * count
    assert dict(loaded.digests) == {file: hashlib.sha256(what).hexdigest() for file, what in tiny(name).items()}
    assert not loaded.official


def test_a_network_trains_on_them(tmp_path: Path) -> None:
    put(tmp_path, "cifar-10")
    loaded: Dataset = load("cifar-10", tmp_path, download=False)
    engine = Engine(loaded, Regime(model="resnet8"))
    assert engine.kernel == "reference"
    order = np.arange(100, dtype=np.int32)[None]
    start = engine.initial_parameters(0)
    _, loss = engine.trainer().train(start, loaded.train_images, loaded.train_labels, order, engine.regime)
    assert 0 < loss < 5


# Damaged files


SMALL = colours(20, 10)[0].transpose(2, 3, 1, 0)
NOT_WHOLE = "cannot reshape array of size {} into shape (3073)"


@pytest.mark.parametrize(
    ("name", "file", "damage", "problem"),
    [
        ("cifar-10", "data_batch_3.bin", lambda good: good[:-1], NOT_WHOLE.format("61459")),
        ("cifar-10", "test_batch.bin", lambda good: b"", ""),
        ("cifar-10", "data_batch_1.bin", lambda good: b"\x0a" + good[1:], "it holds labels from 0 to 10; there are 10"),
        ("cifar-10", "data_batch_1.bin", lambda good: bytes(len(good)), "its images are blank"),
        ("cifar-10", "data_batch_1.bin", pickle.dumps, NOT_WHOLE.format(len(pickle.dumps(bytes(20 * 3073))))),
        ("svhn", "train_32x32.mat", lambda good: good[: len(good) // 2], ""),
        ("svhn", "train_32x32.mat", pickle.dumps, "Unknown mat file type"),
        ("svhn", "test_32x32.mat", lambda good: mat_of(X=SMALL), "'y'"),
        ("svhn", "test_32x32.mat", lambda good: mat(20, y=np.ones(19)), "it holds 19 labels for 20 images"),
        ("svhn", "test_32x32.mat", lambda good: mat(20, X=SMALL[:, :, 0]), "axes don't match array"),
        ("svhn", "test_32x32.mat", lambda good: mat(20, X=0 * SMALL), "its images are blank"),
    ],
    ids=lambda it: it if isinstance(it, str) else "",
)  # fmt: skip
def test_a_damaged_file_is_named_with_what_to_do(
    name: str, file: str, damage: Callable[[bytes], bytes], problem: str, tmp_path: Path
) -> None:
    path = put(tmp_path, name) / file
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DatasetError) as caught:
        load(name, tmp_path, download=False)
    message = str(caught.value)
    assert message.startswith(f"data set {name!r}: {path}: cannot be read as it should be: {problem}")
    assert message.endswith(". Delete the file and run again to download it, or put a good one there by hand")


def test_a_cut_archive_of_gzip_is_damaged_too(tmp_path: Path) -> None:
    path = put(tmp_path, "cifar-10", compress=True) / "test_batch.bin.gz"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DatasetError, match=r"test_batch.bin.gz: cannot be read as it should be: Compressed file ended"):
        load("cifar-10", tmp_path, download=False)


# Downloads, by the real torchvision from a server of our own


def archive(name: str) -> bytes:
    """The archive with the files of a tiny CIFAR, among others."""
    folder = vision.FILES[name].folder
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as made:
        for member, what in {**tiny(name), "readme.html": b"hello", "../outside.bin": b"out"}.items():
            described = tarfile.TarInfo(f"{folder.as_posix()}/{member}")
            described.size = len(what)
            made.addfile(described, io.BytesIO(what))
    return file.getvalue()


def md5(what: bytes) -> str:
    return hashlib.md5(what, usedforsecurity=False).hexdigest()


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """Serves tiny archives, to which torchvision is directed: ``folder`` holds them, ``sources`` their checksums."""
    folder = tmp_path / "server"
    with serving(folder) as running:
        known: dict[str, Any] = dict(vision.FILES)
        sets, address = vision.torchvision_datasets(), running.address
        made = archive("cifar-10")
        (folder / "cifar-10-binary.tar.gz").write_bytes(made)
        monkeypatch.setattr(sets.CIFAR10, "url", f"{address}/cifar-10-python.tar.gz")
        known["cifar-10"] = replace(known["cifar-10"], md5=md5(made))
        splits = {}
        for file, what in tiny("svhn").items():
            (folder / file).write_bytes(what)
            splits[file.partition("_")[0]] = [f"{address}/{file}", file, md5(what)]
        monkeypatch.setattr(sets.SVHN, "split_list", splits)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        sources = {it.known.name: replace(it, raw=known[it.known.name]) for it in downloaded.SOURCES}
        yield SimpleNamespace(folder=folder, sources=sources)


@pytest.mark.parametrize("name", NAMES)
def test_missing_files_are_downloaded_once(name: str, server: SimpleNamespace, tmp_path: Path) -> None:
    root = tmp_path / "data"
    first = server.sources[name].load(root, download=True)
    assert first.official
    folder = root / vision.FILES[name].folder
    # The files and the receipt; of the archive nothing else, and no temporary folder.
    assert sorted(path.name for path in folder.iterdir()) == sorted([*tiny(name), vision.RECEIPT])
    assert [path.name for path in root.iterdir()] == [folder.name]
    for served in server.folder.iterdir():
        served.unlink()
    np.testing.assert_array_equal(load(name, root).train_images, first.train_images)


@pytest.mark.parametrize("name", NAMES)
def test_what_has_a_wrong_checksum_is_refused(name: str, server: SimpleNamespace, tmp_path: Path) -> None:
    for served in server.folder.iterdir():
        served.write_bytes(served.read_bytes() + b"!")
    with pytest.raises(DatasetError, match=r"they could not be downloaded: File not found or corrupted"):
        server.sources[name].load(tmp_path / "data", download=True)
    assert not list((tmp_path / "data").rglob("*.*"))


def test_the_checksum_is_not_that_of_the_pickles() -> None:
    """It is of the archive of records; torchvision's own archive holds pickles, and is not downloaded."""
    sets, raw = vision.torchvision_datasets(), vision.FILES["cifar-10"]
    assert isinstance(raw, vision.RecordFiles)
    assert sets.CIFAR10.url.endswith("cifar-10-python.tar.gz")
    assert raw.md5 != sets.CIFAR10.tgz_md5
