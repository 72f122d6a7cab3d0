"""Partitions of LEAF, FedScale, FedLab and FedML, converted to a file that a scenario can name; no pickle runs."""

import json
import pickle
import subprocess
import sys
from collections import OrderedDict, defaultdict
from pathlib import Path

import numpy as np
import pytest

from fl.data.registry import load

EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))

import plain_pickle  # noqa: E402 - the examples are no package


def convert(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, EXAMPLES / "partitions.py", *arguments, "--out", "parts.json", "--names", "names.csv"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


OWNED = {"0": [4, 1], "1": [], "2": [0, 2, 3]}


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_fedlab_s_pickles(protocol: int, tmp_path: Path) -> None:
    found = OrderedDict({7: np.array([4, 1]), 8: np.array([], dtype=np.int64), 9: np.array([0, 2, 3], np.int32)})
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(found, protocol))
    done = convert(tmp_path, "fedlab", "a.pkl")
    assert done.stdout == "parts.json: 3 clients, 5 images; without one: 1\n", done.stderr
    assert json.loads((tmp_path / "parts.json").read_text()) == OWNED
    assert (tmp_path / "names.csv").read_text() == "client,name\n0,7\n1,8\n2,9\n"


def test_fedml_s_text(tmp_path: Path) -> None:
    (tmp_path / "map.txt").write_text("{\n0: [\n 4,1\n],\n1: [\n],\n2: [\n0, 2,\n3]\n}\n")
    assert convert(tmp_path, "fedml", "map.txt").returncode == 0
    assert json.loads((tmp_path / "parts.json").read_text()) == OWNED


def test_fedscale_s_rows(tmp_path: Path) -> None:
    rows = ["client_id,sample_path,label_name,label_id", "b,1,x,1", "a,2,x,1", "b,3,x,0"]
    (tmp_path / "train.csv").write_text("\n".join(rows) + "\n")
    assert convert(tmp_path, "fedscale", "train.csv").returncode == 0
    assert json.loads((tmp_path / "parts.json").read_text()) == {"0": [0, 2], "1": [1]}
    assert (tmp_path / "names.csv").read_text() == "client,name\n0,b\n1,a\n"


def test_leaf_s_images_become_a_data_set(tmp_path: Path) -> None:
    def users(*sizes: int) -> str:
        drawn = np.random.default_rng(0)
        data = {
            f"f{n}": {"x": drawn.random((size, 64)).tolist(), "y": [k % 2 for k in range(size)]}
            for n, size in enumerate(sizes)
        }
        return json.dumps({"users": [*data], "num_samples": [*sizes], "user_data": data})

    (tmp_path / "train.json").write_text(users(3, 2))
    (tmp_path / "test.json").write_text(users(1, 1))
    done = convert(tmp_path, "leaf", "train.json", "test.json", "--images", "leaf.npz")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "parts.json").read_text()) == {"0": [0, 1, 2], "1": [3, 4]}
    assert load(str(tmp_path / "leaf.npz")).train_labels.tolist() == [0, 1, 0, 0, 1]


@pytest.mark.parametrize(
    ("kind", "content", "problem"),
    [
        ("fedlab", b"hello", "is not a pickle that is read"),
        ("fedlab", pickle.dumps(5), "'int' object is not iterable"),
        ("fedlab", pickle.dumps({"a": ["x"]}), "invalid literal for int()"),
        ("fedlab", pickle.dumps({"a": Path("x")}), "the file asks for pathlib."),
        ("fedscale", b"a,b\n1,2\n", "has no column client_id"),
        ("fedlab", pickle.dumps({"a": []}), "no client owns an image"),
        ("fedml", b"", "is not a pickle that is read"),
    ],
)
def test_what_is_no_partition_is_said_in_a_line(kind: str, content: bytes, problem: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(content)
    done = convert(tmp_path, kind, "a")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert problem in done.stderr


def test_plain_values_and_arrays_are_read_whatever_wrote_them(tmp_path: Path) -> None:
    value = {"a": defaultdict(list, {1: [2.5]}), "b": {3, 4}, "c": np.arange(3.0), "d": np.int64(5), "e": (None, True)}
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        (tmp_path / "a").write_bytes(pickle.dumps(value, protocol))
        found = plain_pickle.read(tmp_path / "a")
        np.testing.assert_array_equal(found.pop("c"), value["c"])
        assert found == {name: it for name, it in value.items() if name != "c"}


@pytest.mark.parametrize("thing", [print, np.array([print]), np.array([None]), subprocess.Popen, range(3)], ids=str)
def test_nothing_else_is_read(thing: object, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(pickle.dumps({"a": thing}))
    with pytest.raises(ValueError, match=r"only (plain values|numbers and text) are read"):
        plain_pickle.read(tmp_path / "a")
