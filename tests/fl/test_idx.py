"""IDX files: what a good one looks like, and every way in which one can be bad."""

import gzip
import hashlib
from pathlib import Path

import numpy as np
import pytest

from fl.idx import MAX_ITEMS, IdxError, read_images, read_labels

IMAGES = np.arange(3 * 28 * 28).reshape(3, 28, 28).astype(np.uint8)
LABELS = np.array([2, 0, 1], dtype=np.uint8)

# Two zero bytes, the type (8: unsigned byte, 12: 32-bit integer), the number of dimensions; the dimensions, big-endian.
IMAGE_HEADER = bytes.fromhex("00000803 00000003 0000001c 0000001c")
LABEL_HEADER = bytes.fromhex("00000801 00000003")
EXTENDED_HEADER = bytes.fromhex("00000c02 00000003 00000008")
GOOD_IMAGES = IMAGE_HEADER + IMAGES.tobytes()
GOOD_LABELS = LABEL_HEADER + LABELS.tobytes()


@pytest.fixture
def images_file(tmp_path: Path) -> Path:
    return tmp_path / "train-images-idx3-ubyte"


@pytest.fixture
def labels_file(tmp_path: Path) -> Path:
    return tmp_path / "train-labels-idx1-ubyte"


def test_images_come_as_they_were_stored_with_the_digest_of_the_file(images_file: Path) -> None:
    images_file.write_bytes(GOOD_IMAGES)
    images, digest = read_images(images_file, 28, 28)
    np.testing.assert_array_equal(images, IMAGES)
    assert images.dtype == np.uint8
    assert digest == hashlib.sha256(GOOD_IMAGES).hexdigest()


def test_a_compressed_file_gives_the_same_images_and_the_same_digest(images_file: Path) -> None:
    compressed = images_file.with_name(images_file.name + ".gz")
    compressed.write_bytes(gzip.compress(GOOD_IMAGES))
    images, digest = read_images(compressed, 28, 28)
    np.testing.assert_array_equal(images, IMAGES)
    assert digest == hashlib.sha256(GOOD_IMAGES).hexdigest()


def test_labels_count_from_zero_whatever_the_file_calls_the_first(labels_file: Path) -> None:
    labels_file.write_bytes(GOOD_LABELS)
    assert read_labels(labels_file, 3, 3)[0].tolist() == [2, 0, 1]
    labels_file.write_bytes(LABEL_HEADER + (LABELS + 1).tobytes())
    assert read_labels(labels_file, 3, 3, first=1)[0].tolist() == [2, 0, 1]


def test_the_class_is_the_first_of_the_eight_numbers_of_an_extended_label(tmp_path: Path) -> None:
    rows = [[2, 4, 2100, 149, 32, 281_769, 0, 0], [0, 0, 5, 1, 30, 7, 0, 0], [1, 1, 6, 2, 31, 8, 0, 0]]
    content = EXTENDED_HEADER + np.array(rows, dtype=">i4").tobytes()
    path = tmp_path / "qmnist-train-labels-idx2-int"
    path.write_bytes(content)
    labels, digest = read_labels(path, 3, 10)
    assert (labels.tolist(), labels.dtype) == ([2, 0, 1], np.uint8)
    assert digest == hashlib.sha256(content).hexdigest()


def test_what_is_read_cannot_be_changed(images_file: Path, labels_file: Path) -> None:
    images_file.write_bytes(GOOD_IMAGES)
    labels_file.write_bytes(GOOD_LABELS)
    for array in (read_images(images_file, 28, 28)[0], read_labels(labels_file, 3, 3)[0]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "it is empty; the magic number here is 0x00000803"),
        (GOOD_LABELS, "it starts with 0x00000801; the magic number here is 0x00000803"),
        (gzip.compress(GOOD_IMAGES, mtime=0), "it starts with 0x1f8b0800; the magic number here is 0x00000803"),
        (IMAGE_HEADER[:10], "it ends within its header"),
        (GOOD_IMAGES[:-1], "it is cut off: 2,367 bytes instead of 2,368"),
        (IMAGE_HEADER, "it is cut off: 16 bytes instead of 2,368"),
        (GOOD_IMAGES + b"\0", "it is longer than the 2,368 bytes that its header announces"),
        (
            bytes.fromhex("00000803 00000003 00000020 0000001c") + bytes(3 * 32 * 28),
            "its items have the dimensions 32 x 28; they must be 28 x 28",
        ),
        (bytes.fromhex("00000803 00000000 0000001c 0000001c"), "its header says 0 items; there must be 1 to 2,000,000"),
        (
            bytes.fromhex("00000803 ffffffff 0000001c 0000001c"),
            f"its header says 4,294,967,295 items; there must be 1 to {MAX_ITEMS:,}",
        ),
        (IMAGE_HEADER + bytes(3 * 28 * 28), "its images are blank"),
    ],
    ids=[
        "empty", "labels instead", "compressed without .gz", "half a header", "one byte short", "header alone",
        "one byte too many", "other dimensions", "no images", "absurdly many images", "blank",
    ],
)  # fmt: skip
def test_a_bad_file_of_images_is_refused(content: bytes, problem: str, images_file: Path) -> None:
    images_file.write_bytes(content)
    with pytest.raises(IdxError) as caught:
        read_images(images_file, 28, 28)
    assert str(caught.value) == problem


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (GOOD_IMAGES, "it starts with 0x00000803; the magic number here is 0x00000801"),
        (LABEL_HEADER + bytes([0, 1, 3]), "it holds the label 3; labels are 0 to 2"),
        (bytes.fromhex("00000801 00000002 0001"), "it holds 2 labels for 3 images"),
    ],
    ids=["images instead", "out of range", "not one for each image"],
)
def test_a_bad_file_of_labels_is_refused(content: bytes, problem: str, labels_file: Path) -> None:
    labels_file.write_bytes(content)
    with pytest.raises(IdxError) as caught:
        read_labels(labels_file, 3, 3)
    assert str(caught.value) == problem


def test_a_label_below_the_first_is_out_of_range(labels_file: Path) -> None:
    labels_file.write_bytes(GOOD_LABELS)
    with pytest.raises(IdxError, match="it holds the label 0; labels are 1 to 26"):
        read_labels(labels_file, 3, 26, first=1)


def test_a_negative_extended_label_is_out_of_range(tmp_path: Path) -> None:
    path = tmp_path / "qmnist-test-labels-idx2-int"
    path.write_bytes(EXTENDED_HEADER + np.full((3, 8), -1, dtype=">i4").tobytes())
    with pytest.raises(IdxError, match="it holds the label -1; labels are 0 to 9"):
        read_labels(path, 3, 10)


COMPRESSED = gzip.compress(GOOD_IMAGES, mtime=0)


@pytest.mark.parametrize(
    "content",
    [
        b"no gzip at all",
        COMPRESSED[:-20],  # ends early
        COMPRESSED[:-6] + b"\0" * 6,  # wrong check sum and length
        COMPRESSED[:20] + b"\xff" * 20 + COMPRESSED[40:],  # damaged inside
    ],
    ids=["not gzip", "cut off", "wrong check sum", "damaged"],
)
def test_damaged_compression_is_a_bad_file(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(content)
    with pytest.raises(IdxError, match="it cannot be read: "):
        read_images(path, 28, 28)


def test_a_file_that_the_system_does_not_open_is_a_bad_file(images_file: Path) -> None:
    images_file.mkdir()
    with pytest.raises(IdxError, match=r"it cannot be read: .*directory"):
        read_images(images_file, 28, 28)
