"""Data sets by name: what there is, loading, downloading, and what a user is told when it cannot be done."""

import gzip
import hashlib
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fl import downloaded, embedded, vision
from fl.dataset import Dataset
from fl.datasets import DatasetError, data_root, info, load, names
from fl.digests import OFFICIAL
from fl.errors import InputError
from fl.plugins import UnknownPluginError
from support.downloads import put_files, serving

ROOT = Path(__file__).parents[2]
TRAIN, TEST = 30, 20


RAW = [name for name, files in vision.FILES.items() if isinstance(files, vision.RawFiles)]


def idx(array: np.ndarray) -> bytes:
    """The IDX file of an array."""
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">u4").tobytes() + array.tobytes()


def tiny(name: str) -> dict[str, bytes]:
    """The four files of a tiny data set in the format of the named one: image k is labelled k modulo L."""
    raw, labels = vision.FILES[name], info(name).labels
    assert isinstance(raw, vision.RawFiles)
    contents = []
    for count in (TRAIN, TEST):
        classes = np.arange(count) % labels
        images = np.zeros((count, 28, 28), dtype=np.uint8)
        images[:, 5, 20] = 1 + classes  # a dot towards the upper right
        contents.append(idx(images.transpose(0, 2, 1) if raw.transposed else images))
        contents.append(idx((classes + raw.first_label).astype(np.uint8)))
    return dict(zip(raw.files, contents, strict=True))


def put(root: Path, name: str, *, compress: bool = False) -> Path:
    """Write the files of a tiny data set where torchvision keeps them; return their folder."""
    return put_files(root / vision.FILES[name].folder, tiny(name), compress=compress)


def snapshot(root: Path) -> dict[str, tuple[int, bytes]]:
    """When each file below was written, and what it holds."""
    files = [path for path in sorted(root.rglob("*")) if path.is_file()]
    return {str(path.relative_to(root)): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


# What there is


def test_data_sets_go_by_these_names() -> None:
    assert names() == [
        "digits", "strokes", "scribbles", "mnist", "fashion-mnist", "emnist-digits", "emnist-letters",
        "emnist-balanced", "kmnist", "cifar-10", "svhn",
    ]  # fmt: skip
    assert [name for name in names() if info(name).source == "embedded"] == ["digits", "strokes", "scribbles"]
    assert {name for name in names() if info(name).source == "download"} == set(vision.FILES)


def test_downloaded_sets_have_the_sizes_that_were_published() -> None:
    """Labels, training and test images, and training images of the rarest label."""
    found = [info(name) for name in names() if info(name).source == "download"]
    assert {i.name: (i.labels, i.train_size, i.test_size, i.rarest_label) for i in found} == {
        "mnist": (10, 60_000, 10_000, 5_421),
        "fashion-mnist": (10, 60_000, 10_000, 6_000),
        "emnist-digits": (10, 240_000, 40_000, 24_000),
        "emnist-letters": (26, 124_800, 20_800, 4_800),
        "emnist-balanced": (47, 112_800, 18_800, 2_400),
        "kmnist": (10, 60_000, 10_000, 6_000),
        "cifar-10": (10, 50_000, 10_000, 5_000),
        "svhn": (10, 73_257, 26_032, 4_659),
    }


@pytest.mark.parametrize("name", names())
def test_what_is_known_of_a_data_set_is_possible(name: str) -> None:
    found = info(name)
    assert found.name == name
    assert found.labels * found.rarest_label <= found.train_size
    assert found.description
    assert found.licence


@pytest.mark.parametrize(
    ("asked", "hint"),
    [("mnits", "did you mean 'mnist'?"), ("imagenet", "choose from digits, strokes, scribbles, mnist, ")],
)
def test_an_unknown_name_gets_a_hint(asked: str, hint: str) -> None:
    for function in (info, load):
        with pytest.raises(UnknownPluginError) as caught:
            function(asked)
        assert str(caught.value).startswith(f"unknown data set {asked!r}; {hint}")


def test_knowing_the_data_sets_and_reading_files_needs_no_heavy_import(tmp_path: Path) -> None:
    put(tmp_path, "mnist")
    code = (
        "import sys; from fl.datasets import info, load; from pathlib import Path; info('kmnist');"
        "load('mnist', Path(sys.argv[1])); load('strokes'); load('digits');"
        "print([heavy for heavy in ('torch', 'torchvision', 'sklearn') if heavy in sys.modules])"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


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
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/flmarket"),
        ("win32", {}, "/home/ada/AppData/Local/flmarket"),
    ],
)
def test_else_in_the_users_cache_folder(
    platform: str, variables: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", {"HOME": "/home/ada", **variables})
    monkeypatch.setattr(downloaded.sys, "platform", platform)
    assert data_root() == Path(expected)


# Loading


@pytest.mark.parametrize("name", RAW)
@pytest.mark.parametrize("compress", [False, True], ids=["plain", "gz"])
def test_every_format_loads_upright_with_labels_from_zero(name: str, compress: bool, tmp_path: Path) -> None:
    put(tmp_path, name, compress=compress)
    loaded = load(name, tmp_path, download=False)
    for images, labels, count in (
        (loaded.train_images, loaded.train_labels, TRAIN),
        (loaded.test_images, loaded.test_labels, TEST),
    ):
        assert images.shape == (count, *info(name).shape) == (count, 1, 28, 28)
        assert (images.dtype, labels.dtype) == (np.uint8, np.uint8)
        assert images.flags.c_contiguous
        assert labels.tolist() == [k % info(name).labels for k in range(count)]
        np.testing.assert_array_equal(images[:, 0, 5, 20], 1 + labels)
        assert np.count_nonzero(images) == count
    assert dict(loaded.digests) == {file: hashlib.sha256(content).hexdigest() for file, content in tiny(name).items()}
    assert not loaded.official
    # What is known of the copy at hand, not of the official data set.
    assert (loaded.info.train_size, loaded.info.test_size) == (TRAIN, TEST)
    assert loaded.info.rarest_label == TRAIN // info(name).labels


def test_images_of_a_label_are_found_by_label(tmp_path: Path) -> None:
    put(tmp_path, "mnist")
    loaded = load("mnist", tmp_path)
    assert [pool.tolist() for pool in loaded.by_label] == [[k, k + 10, k + 20] for k in range(10)]
    assert loaded.by_label[0].dtype == np.int64


def test_scale_and_offset_standardise_the_training_split() -> None:
    loaded = load("strokes")
    values = loaded.train_images * loaded.scale + loaded.offset
    assert values.mean() == pytest.approx(0, abs=1e-9)
    assert values.std() == pytest.approx(1)


@pytest.mark.parametrize("brightest", [False, True])
def test_scale_and_offset_are_exact_to_the_last_bit(brightest: bool) -> None:
    """The sums are integers, taken here without any limit: a single pixel more or less would show, or an overflow."""
    loaded = load("strokes")
    if brightest:
        images = 255 - loaded.train_images // 64
        arrays = (images, loaded.train_labels, loaded.test_images, loaded.test_labels)
        loaded = Dataset.of(loaded.info, arrays, {}, {})
    pixels = loaded.train_images.astype(np.int64)
    count, total, squares = pixels.size, int(pixels.sum()), int((pixels * pixels).sum())
    deviation = math.sqrt((count * squares - total * total) / count**2)
    assert (loaded.scale, loaded.offset) == (1.0 / deviation, -total / count / deviation)


def test_arrays_are_read_only(tmp_path: Path) -> None:
    put(tmp_path, "emnist-letters")
    for loaded in (load("digits"), load("emnist-letters", tmp_path)):
        arrays = (loaded.train_images, loaded.train_labels, loaded.test_images, loaded.test_labels, *loaded.by_label)
        assert not any(array.flags.writeable for array in arrays)


def test_reading_writes_nothing_and_downloads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vision, "download", lambda *_: pytest.fail("downloaded files that were there"))
    put(tmp_path, "kmnist")
    before = snapshot(tmp_path)
    load("kmnist", tmp_path)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("name", ["digits", "strokes", "scribbles"])
def test_embedded_data_sets_are_as_announced(name: str) -> None:
    loaded = load(name, download=False)
    assert loaded.info == info(name)
    assert loaded.official
    assert dict(loaded.digests) == OFFICIAL[name]


def test_an_embedded_set_that_came_out_otherwise_is_unofficial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "OFFICIAL", {"digits": {**OFFICIAL["digits"], "test-labels": "0" * 64}})
    assert not load("digits").official


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_the_official_files_are_recognised(name: str, real_images: Path) -> None:
    loaded = load(name, real_images, download=False)
    assert loaded.official
    assert loaded.info == info(name)


@pytest.mark.real_data
def test_a_composite_of_emnist_is_marked_unofficial(real_images: Path) -> None:
    loaded = load("emnist-digits", real_images, download=False)
    assert loaded.official == (len(loaded.train_labels) == info("emnist-digits").train_size)
    assert loaded.info.labels == 10


# Files that are missing or corrupt


IMAGES, LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"


@pytest.mark.parametrize(
    ("file", "damage", "problem"),
    [
        (LABELS, lambda good: good[:-1], "cannot reshape array of size 29 into shape (30,)"),
        (IMAGES, lambda good: good + b"!", "cannot reshape array of size 23521 into shape (30,28,28)"),
        (IMAGES, lambda good: good[:9], "buffer is smaller than requested size"),
        (IMAGES, lambda good: b"", "it starts with 0x, not with 0x000008"),
        (IMAGES, lambda good: b"PK\3\4" + good, "it starts with 0x504b03, not with 0x000008"),
        (IMAGES, lambda good: idx(np.ones((30, 28, 27), np.uint8)), "its images are blank"),
        (IMAGES, lambda good: idx(np.eye(28, 27, dtype=np.uint8)[None]), "its images have the shape [28, 27]"),
        (LABELS, lambda good: idx(np.full(TRAIN, 10, np.uint8)), "it holds labels from 10 to 10; there are 10 from 0"),
        (LABELS, lambda good: idx(np.arange(9, dtype=np.uint8)), "it holds 9 labels for 30 images"),
    ],
)
def test_a_file_that_is_damaged_or_another_is_named_with_what_to_do(
    file: str, damage: Callable[[bytes], bytes], problem: str, tmp_path: Path
) -> None:
    path = put(tmp_path, "mnist") / file
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DatasetError) as caught:
        load("mnist", tmp_path)
    message = str(caught.value)
    assert message.startswith(f"data set 'mnist': {path}: cannot be read as it should be: {problem}")
    assert message.endswith("Delete the file and run again to download it, or put a good one there by hand")


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


# Downloads, by the real torchvision from a server of our own


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """Serves tiny archives of MNIST, to which torchvision is directed: ``folder`` holds them, ``requests`` counts."""
    folder = tmp_path / "server"
    with serving(folder) as running:
        resources = []
        for file, content in tiny("mnist").items():
            archive = gzip.compress(content)
            (folder / f"{file}.gz").write_bytes(archive)
            resources.append((f"{file}.gz", hashlib.md5(archive, usedforsecurity=False).hexdigest()))
        mnist = vision.torchvision_datasets().MNIST
        monkeypatch.setattr(mnist, "mirrors", [f"{running.address}/"])
        monkeypatch.setattr(mnist, "resources", resources)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield SimpleNamespace(folder=folder, requests=running.requests)


def test_missing_files_are_downloaded_once(server: SimpleNamespace, tmp_path: Path) -> None:
    root = tmp_path / "new" / "data"
    first = load("mnist", root)
    assert server.requests
    server.requests.clear()
    before = snapshot(root)
    again = load("mnist", root)
    assert snapshot(root) == before
    assert not server.requests
    np.testing.assert_array_equal(first.train_images, again.train_images)
    # The files and the receipt, no archive, no temporary folder.
    assert list(before) == sorted(str(Path("MNIST/raw") / file) for file in (*tiny("mnist"), vision.RECEIPT))
    assert os.listdir(root) == ["MNIST"]  # noqa: PTH208 - hidden ones too


def test_files_that_are_there_stay_when_the_others_are_downloaded(server: SimpleNamespace, tmp_path: Path) -> None:
    folder = put(tmp_path, "mnist")
    own = idx(np.full(TEST, 3, dtype=np.uint8))
    (folder / "t10k-labels-idx1-ubyte").write_bytes(own)
    (folder / "train-images-idx3-ubyte").unlink()
    loaded = load("mnist", tmp_path)
    assert (folder / "t10k-labels-idx1-ubyte").read_bytes() == own
    assert set(loaded.test_labels) == {3}


def test_an_archive_with_a_wrong_checksum_is_refused(server: SimpleNamespace, tmp_path: Path) -> None:
    (server.folder / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(b"something else"))
    with pytest.raises(DatasetError, match=r"could not be downloaded: .*corrupted"):
        load("mnist", tmp_path / "data")
    # Not even the images, which were good, look like data now.
    assert snapshot(tmp_path / "data") == {}


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


def test_what_an_earlier_download_left_behind_when_it_was_killed_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    code = "from fl.vision import torchvision_datasets as sets; print(sets().MNIST.__name__, sets() is sets())"
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
