"""Data sets in files: every format exactly as it is published, damaged files, and downloads. No pickle is loaded."""

import functools
import gzip
import hashlib
import http.server
import io
import os
import pickle
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from fl.data import downloaded
from fl.data import torchvision_files as vision
from fl.data.registry import DatasetError, data_root, info, load
from flmarket.core.errors import InputError

ROOT = Path(__file__).parents[3]
TRAIN, TEST = 30, 20  # images in each file of a tiny data set


def dots(name: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Images [n, C, H, W] and labels: image k is labelled k modulo L, with a dot at the upper right, which differs by
    label and channel."""
    classes = np.arange(count) % info(name).labels
    images = np.zeros((count, *info(name).shape), dtype=np.uint8)
    images[:, :, 5, 20] = 1 + classes[:, None] + 10 * np.arange(info(name).shape.channels)
    return images, classes.astype(np.uint8)


def idx(array: np.ndarray) -> bytes:
    """The IDX file of an array."""
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">u4").tobytes() + array.tobytes()


def mat(**arrays: Any) -> bytes:
    file = io.BytesIO()
    savemat(file, arrays, do_compression=True)
    return b"MATLAB 5.0 MAT-file".ljust(116) + file.getvalue()[116:]  # without the second in which it was made


def count_of(file: str) -> int:
    return TEST if "test" in file or "t10k" in file else TRAIN


def content(name: str, file: str) -> bytes:
    """A file of a tiny data set, in the format of the named one."""
    files, (images, labels) = vision.FILES[name], dots(name, count_of(file))
    if isinstance(files, vision.RecordFiles):  # a label, then red, green and blue rows
        return np.hstack([labels[:, None], images.reshape(len(images), -1)]).tobytes()
    if isinstance(files, vision.MatlabFiles):  # [height, width, channels, n]; the digit 0 is labelled 10
        return mat(X=images.transpose(2, 3, 1, 0), y=np.where(labels == 0, 10, labels)[:, None].astype(np.uint8))
    assert isinstance(files, vision.IdxFiles)
    if "labels" in file:
        return idx(labels + np.uint8(name == "emnist-letters"))  # whose labels count from 1
    return idx(images[:, 0].transpose(0, 2, 1) if name.startswith("emnist") else images[:, 0])


def tiny(name: str) -> dict[str, bytes]:
    return {file: content(name, file) for file in vision.FILES[name].files}


def put(root: Path, name: str, *, compress: bool = False) -> Path:
    """Write the files of a tiny data set where torchvision keeps them; return their folder."""
    folder = root / vision.FILES[name].folder
    folder.mkdir(parents=True)
    for file, what in tiny(name).items():
        (folder / (file + ".gz" * compress)).write_bytes(gzip.compress(what) if compress else what)
    return folder


def snapshot(root: Path) -> dict[str, tuple[int, bytes]]:
    """When each file below was written, and what it holds."""
    files = [path for path in sorted(root.rglob("*")) if path.is_file()]
    return {str(path.relative_to(root)): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


# Reading


@pytest.mark.parametrize("name", vision.FILES)
@pytest.mark.parametrize("compress", [False, True], ids=["plain", "gz"])
def test_every_format_loads_upright_with_labels_from_zero(
    name: str, compress: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vision, "download", lambda *_: pytest.fail("downloaded files that were there"))
    put(tmp_path, name, compress=compress)
    before = snapshot(tmp_path)
    loaded = load(name, tmp_path)
    assert snapshot(tmp_path) == before  # reading writes nothing
    parts = 5 if name == "cifar-10" else 1
    for images, labels, count in (
        (loaded.train_images, loaded.train_labels, TRAIN * parts),
        (loaded.test_images, loaded.test_labels, TEST),
    ):
        expected, classes = dots(name, TRAIN if count > TEST else TEST)
        np.testing.assert_array_equal(images, np.tile(expected, (count // len(expected), 1, 1, 1)))
        np.testing.assert_array_equal(labels, np.tile(classes, count // len(classes)))
        assert (images.dtype, labels.dtype) == (np.uint8, np.uint8)
        assert images.flags.c_contiguous
    assert dict(loaded.digests) == {file: hashlib.sha256(what).hexdigest() for file, what in tiny(name).items()}
    assert not loaded.official
    # What is known of the copy at hand, not of the official data set.
    assert (loaded.info.train_size, loaded.info.test_size) == (TRAIN * parts, TEST)
    assert loaded.info.rarest_label == np.bincount(loaded.train_labels, minlength=loaded.info.labels).min()


def test_knowing_the_data_sets_and_reading_files_needs_no_heavy_import(tmp_path: Path) -> None:
    put(tmp_path, "mnist")
    images, labels = dots("mnist", 4)
    np.savez(tmp_path / "own.npz", pixels=images, labels=labels % 2, split=[0, 0, 1, 1])
    for label in range(4):
        (tmp_path / f"own/{label % 2}").mkdir(parents=True, exist_ok=True)
        Image.fromarray(images[label, 0]).save(tmp_path / f"own/{label % 2}/{label}.png")
    code = (
        "import sys; from fl.data.registry import info, load; from pathlib import Path; info('kmnist');"
        "load('mnist', Path(sys.argv[1])); load('strokes'); load('digits');"
        "load(sys.argv[1] + '/own'); load(sys.argv[1] + '/own.npz');"
        "heavy = ('torch', 'torchvision', 'scipy', 'sklearn', 'http.client', 'ssl');"
        "print([name for name in heavy if name in sys.modules])"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


IMAGES, LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
SMALL = dots("svhn", TEST)[0].transpose(2, 3, 1, 0)
NO_IMAGES = "it does not hold images: it starts with 0x{}, not with 0x00000803"


@pytest.mark.parametrize(
    ("name", "file", "damage", "problem"),
    [
        ("mnist", LABELS, lambda good: good[:-1], "it has 37 bytes, not the 38 that its first 8 announce"),
        ("mnist", IMAGES, lambda good: good[:99], "it has 99 bytes, not the 23,536 that its first 16 announce"),
        ("mnist", IMAGES, lambda good: good + b"!", "it has 23,537 bytes, not the 23,536 that its first 16 announce"),
        ("mnist", IMAGES, lambda good: good[:9], "buffer is smaller than requested size"),
        ("mnist", IMAGES, lambda good: b"", NO_IMAGES.format("")),
        ("mnist", IMAGES, lambda good: b"PK\3\4" + good, NO_IMAGES.format("504b0304")),
        ("mnist", IMAGES, lambda good: content("mnist", LABELS), NO_IMAGES.format("00000801")),
        (
            "mnist",
            LABELS,
            lambda good: content("mnist", IMAGES),
            "it does not hold labels: it starts with 0x00000803, not with 0x00000801",
        ),
        ("mnist", IMAGES, lambda good: idx(np.ones((30, 28, 27), np.uint8)), "its images are blank"),
        ("mnist", IMAGES, lambda good: idx(np.eye(28, 27, dtype=np.uint8)[None]), "its images have the shape [28, 27]"),
        (
            "mnist",
            LABELS,
            lambda good: idx(np.full(TRAIN, 10, np.uint8)),
            "it holds labels from 10 to 10; there are 10",
        ),
        ("mnist", LABELS, lambda good: idx(np.arange(9, dtype=np.uint8)), "it holds 9 labels for 30 images"),
        (
            "cifar-10",
            "data_batch_3.bin",
            lambda good: good[:-1],
            "it has 92,189 bytes; a label and its image have 3,073",
        ),
        ("cifar-10", "test_batch.bin", lambda good: b"", "it has 0 bytes; a label"),
        ("cifar-10", "data_batch_1.bin", lambda good: bytes(len(good)), "its images are blank"),
        ("cifar-10", "data_batch_1.bin", pickle.dumps, "it has 92,"),
        ("svhn", "train_32x32.mat", lambda good: good[: len(good) // 2], ""),
        ("svhn", "train_32x32.mat", pickle.dumps, "Unknown mat file type"),
        ("svhn", "test_32x32.mat", lambda good: mat(X=SMALL), "'y'"),
        ("svhn", "test_32x32.mat", lambda good: mat(X=SMALL[:, :, 0], y=np.ones(TEST)), "axes don't match array"),
    ],
    ids=lambda it: it if isinstance(it, str) else "",
)
def test_a_file_that_is_damaged_or_another_is_named_with_what_to_do(
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


def test_missing_files_are_named_with_what_to_do(tmp_path: Path) -> None:
    folder = put(tmp_path, "mnist")
    for file in ("train-images-idx3-ubyte", "t10k-labels-idx1-ubyte"):
        (folder / file).unlink()
    with pytest.raises(DatasetError) as caught:
        load("mnist", tmp_path, download=False)
    assert str(caught.value) == (
        f"data set 'mnist': {folder} lacks train-images-idx3-ubyte, t10k-labels-idx1-ubyte; downloads are switched off"
        ". Run again with a network connection, put the files there by hand (as they are or as .gz), or set "
        f"FLMARKET_DATA to the folder that holds {Path('MNIST/raw')}"
    )


# Where files lie


def test_files_lie_where_the_variable_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FLMARKET_DATA", str(tmp_path))
    assert data_root() == tmp_path
    monkeypatch.setenv("FLMARKET_DATA", "~/images")
    assert data_root() == Path.home() / "images"
    monkeypatch.setenv("FLMARKET_DATA", "~nobody-of-this-name/images")
    with pytest.raises(InputError) as caught:
        data_root()
    assert str(caught.value) == (
        "~nobody-of-this-name/images: the home folder that '~' stands for is not known; write it out"
    )
    put(tmp_path, "mnist")
    monkeypatch.setenv("FLMARKET_DATA", str(tmp_path))
    assert len(load("mnist", download=False).train_labels) == TRAIN


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {}, "/home/ada/.cache/flmarket"),
        ("linux", {"XDG_CACHE_HOME": "/scratch"}, "/scratch/flmarket"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "/home/ada/.cache/flmarket"),  # to be ignored, says XDG
        ("linux", {"FLMARKET_DATA": ""}, "/home/ada/.cache/flmarket"),
        ("darwin", {}, "/home/ada/Library/Caches/flmarket"),
    ],
)
def test_else_in_the_users_cache_folder(
    platform: str, variables: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", {"HOME": "/home/ada", **variables})
    monkeypatch.setattr(downloaded.sys, "platform", platform)
    assert data_root() == Path(expected)


# Downloads, by the real torchvision from a server of our own


def archive(name: str) -> bytes:
    """The archive with the files of a tiny CIFAR, among others."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as made:
        for member, what in {**tiny(name), "readme.html": b"hello"}.items():
            described = tarfile.TarInfo(f"{vision.FILES[name].folder.as_posix()}/{member}")
            described.size = len(what)
            made.addfile(described, io.BytesIO(what))
    return file.getvalue()


def md5(what: bytes) -> str:
    return hashlib.md5(what, usedforsecurity=False).hexdigest()


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """Serves tiny archives, to which torchvision is directed.

    ``folder`` holds them, ``requests`` counts, ``load`` loads a data set through them.
    """
    folder, requests = tmp_path / "server", []
    folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            requests.append(self.path)

    sources = {it.known.name: it for it in downloaded.SOURCES}
    sets = vision.torchvision_datasets()
    handler = functools.partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        address = f"http://127.0.0.1:{running.server_port}"
        served = {f"{file}.gz": gzip.compress(what) for file, what in tiny("mnist").items()}
        monkeypatch.setattr(sets.MNIST, "mirrors", [f"{address}/"])
        monkeypatch.setattr(sets.MNIST, "resources", [(file, md5(what)) for file, what in served.items()])
        served["cifar-10-binary.tar.gz"] = archive("cifar-10")
        monkeypatch.setattr(sets.CIFAR10, "url", f"{address}/cifar-10-python.tar.gz")
        files = replace(sources["cifar-10"].raw, md5=md5(served["cifar-10-binary.tar.gz"]))  # type: ignore[type-var]
        sources["cifar-10"] = replace(sources["cifar-10"], raw=files)
        served |= tiny("svhn")
        splits = {file.partition("_")[0]: [f"{address}/{file}", file, md5(what)] for file, what in tiny("svhn").items()}
        monkeypatch.setattr(sets.SVHN, "split_list", splits)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        for file, what in served.items():
            (folder / file).write_bytes(what)
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        try:
            yield SimpleNamespace(
                folder=folder, requests=requests, load=lambda name, root: sources[name].load(root, download=True)
            )
        finally:
            running.shutdown()
            thread.join()


@pytest.mark.parametrize("name", ["mnist", "cifar-10", "svhn"])
def test_missing_files_are_downloaded_once(name: str, server: SimpleNamespace, tmp_path: Path) -> None:
    root, folder = tmp_path / "new" / "data", vision.FILES[name].folder
    first = server.load(name, root)
    assert first.official == (name != "mnist")  # whose files have digests of their own
    assert server.requests
    server.requests.clear()
    before = snapshot(root)
    np.testing.assert_array_equal(load(name, root).train_images, first.train_images)
    assert snapshot(root) == before
    assert not server.requests
    # The files and the receipt, no archive, no temporary folder.
    assert list(before) == sorted(str(folder / file) for file in (*tiny(name), vision.RECEIPT))
    assert os.listdir(root) == [folder.parts[0]]  # noqa: PTH208 - hidden ones too


@pytest.mark.parametrize("name", ["mnist", "cifar-10", "svhn"])
def test_what_has_a_wrong_checksum_is_refused(name: str, server: SimpleNamespace, tmp_path: Path) -> None:
    for served in server.folder.iterdir():
        if served.name != f"{IMAGES}.gz":
            served.write_bytes(served.read_bytes() + b"!")
    with pytest.raises(DatasetError, match=r"could not be downloaded: .*corrupted"):
        server.load(name, tmp_path / "data")
    # Not even the images of mnist, which were good, look like data now.
    assert snapshot(tmp_path / "data") == {}


def test_files_that_are_there_stay_when_the_others_are_downloaded(server: SimpleNamespace, tmp_path: Path) -> None:
    folder = put(tmp_path, "mnist")
    own = idx(np.full(TEST, 3, dtype=np.uint8))
    (folder / "t10k-labels-idx1-ubyte").write_bytes(own)
    (folder / "train-images-idx3-ubyte").unlink()
    loaded = load("mnist", tmp_path)
    assert (folder / "t10k-labels-idx1-ubyte").read_bytes() == own
    assert set(loaded.test_labels) == {3}


def test_the_checksum_is_not_that_of_the_pickles() -> None:
    """It is of the archive of records; torchvision's own archive holds pickles, and is not downloaded."""
    sets, raw = vision.torchvision_datasets(), vision.FILES["cifar-10"]
    assert isinstance(raw, vision.RecordFiles)
    assert sets.CIFAR10.url.endswith("cifar-10-python.tar.gz")
    assert raw.md5 != sets.CIFAR10.tgz_md5


def test_without_a_network_the_error_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # Nothing listens on the discard port.
    monkeypatch.setattr(vision.torchvision_datasets().MNIST, "mirrors", ["http://127.0.0.1:9/"])
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(DatasetError) as caught:
        load("mnist", tmp_path)
    message = str(caught.value)
    assert message.startswith(f"data set 'mnist': {tmp_path / 'MNIST' / 'raw'} lacks train-images-idx3-ubyte, ")
    assert (
        "they could not be downloaded: Error downloading train-images-idx3-ubyte.gz: Tried http://127.0.0.1" in message
    )
    assert "Connection refused" in message
    assert message.endswith(f"or set FLMARKET_DATA to the folder that holds {Path('MNIST/raw')}")
    assert "\n" not in message


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(DatasetError, match=r"could not be downloaded: .*[Nn]ot a directory"):
        load("mnist", tmp_path / "file" / "data")


# Downloads of the other sources, by a stand-in for torchvision


class Archive:
    """Stands in for ``torchvision.datasets``: "downloads" tiny files; ``interrupt`` comes after that many."""

    def __init__(self, *contents: str, interrupt: int | None = None) -> None:
        self.files = {file: content for name in contents for file, content in tiny(name).items()}
        self.requests: list[dict[str, Any]] = []
        self.interrupt = interrupt

    def __getattr__(self, source: str) -> Any:
        def construct(root: str, **arguments: Any) -> None:
            self.requests.append({"source": source, **arguments})
            folder = Path(root) / source / "raw"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "gzip.zip").write_bytes(b"the archive")
            for count, (file, content) in enumerate(self.files.items()):
                if count == self.interrupt:
                    (folder / file).write_bytes(content[:20])
                    raise KeyboardInterrupt
                (folder / file).write_bytes(content)

        return construct


def test_an_interrupted_download_leaves_nothing_that_looks_like_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vision, "torchvision_datasets", lambda: Archive("kmnist", interrupt=2))
    with pytest.raises(KeyboardInterrupt):
        load("kmnist", tmp_path)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(vision, "torchvision_datasets", lambda: Archive("kmnist"))
    assert len(load("kmnist", tmp_path).train_images) == TRAIN


def test_what_an_earlier_download_left_behind_when_it_was_killed_is_not_used(tmp_path: Path) -> None:
    put(tmp_path / ".download-killed", "kmnist")
    with pytest.raises(DatasetError, match="lacks"):
        load("kmnist", tmp_path, download=False)


def test_a_download_that_flmarket_made_is_official(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torchvision checked the archive; the receipt says what was in it."""
    monkeypatch.setattr(vision, "torchvision_datasets", lambda: Archive("kmnist"))
    assert load("kmnist", tmp_path).official
    # Good files, but others than were downloaded.
    path = tmp_path / "KMNIST" / "raw" / "t10k-labels-idx1-ubyte"
    path.write_bytes(idx(np.full(TEST, 3, dtype=np.uint8)))
    assert not load("kmnist", tmp_path).official


@pytest.mark.parametrize("content", [b"\xff\xfe", b"no receipt\n", b""])
def test_a_spoilt_receipt_proves_nothing(content: bytes, tmp_path: Path) -> None:
    (put(tmp_path, "kmnist") / vision.RECEIPT).write_bytes(content)
    assert not load("kmnist", tmp_path).official


def test_one_download_brings_all_splits_of_emnist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = Archive("emnist-letters", "emnist-balanced", "emnist-digits")
    monkeypatch.setattr(vision, "torchvision_datasets", lambda: archive)
    own = put(tmp_path, "emnist-digits") / "emnist-digits-test-labels-idx1-ubyte"
    own.write_bytes(idx(np.full(TEST, 3, dtype=np.uint8)))
    assert load("emnist-letters", tmp_path).official
    assert load("emnist-balanced", tmp_path).official
    assert archive.requests == [{"source": "EMNIST", "split": "letters", "train": False, "download": True}]
    # Digits were there before, and aren't what the archive holds.
    assert not load("emnist-digits", tmp_path).official


def test_an_archive_without_the_files_leaves_them_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vision, "torchvision_datasets", lambda: Archive("kmnist"))
    with pytest.raises(DatasetError, match="lacks emnist-letters-train-images-idx3-ubyte"):
        load("emnist-letters", tmp_path)


# Importing torchvision


@pytest.mark.slow
def test_torchvision_imports_beside_any_torch_in_a_fresh_interpreter() -> None:
    code = "from fl.data.torchvision_files import torchvision_datasets as s; print(s().MNIST.__name__, s() is s())"
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("MNIST True\n", "")


def test_other_failures_of_the_import_are_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> None:
        raise RuntimeError("something else is wrong")

    monkeypatch.setattr(vision, "import_module", broken)
    with pytest.raises(RuntimeError, match="something else"):
        vision.torchvision_datasets()
    # A user, who can still put the files there by hand, gets the one error for missing data.
    with pytest.raises(DatasetError, match="could not be downloaded: something else is wrong"):
        load("mnist", tmp_path)
