"""Convert the partitions of LEAF, FedScale, FedLab and FedML to a file for `data.partition`.

    python examples/partitions.py fedlab parts.pkl --out parts.json
    python examples/partitions.py leaf train.json test.json --out femnist.json --images femnist.npz

    fedscale   CSV with the columns client_id, ..., a row for each image of the training split, in its order
    fedlab     pickle of {client: indices of images}, or of a list of these
    fedml      net_dataidx_map.txt, `{0: [4, 7, ...], ...}`, or such a pickle
    leaf       JSON files of training and of test images: the images are written, too, for `dataset = "femnist.npz"`

Clients are numbered in the order of the file; `--names` writes a CSV (client,name) of what they were called. Clients
without an image are kept. Sources: Caldas et al., "LEAF: a benchmark for federated settings", 2018; Lai et al.,
"FedScale", ICML 2022; Zeng et al., "FedLab", JMLR 2023; He et al., "FedML", 2020.
"""

import argparse
import csv
import json
import re
from collections.abc import Mapping, Sequence
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
import plain_pickle

Partition = Mapping[str, Sequence[int]]  # the images of each client, by its name


def fedscale(path: Path) -> Partition:
    """Read a mapping of clients to samples."""
    found: dict[str, list[int]] = {}
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        if "client_id" not in (reader.fieldnames or ()):
            raise ValueError("has no column client_id")
        for image, row in enumerate(reader):
            found.setdefault(row["client_id"], []).append(image)
    return found


def fedlab(path: Path) -> Partition:
    """Read a pickle of the indices of each client."""
    found = plain_pickle.read(path)
    found = found if isinstance(found, Mapping) else dict(enumerate(found))
    return {str(client): [int(image) for image in own] for client, own in found.items()}


def fedml(path: Path) -> Partition:
    """Read net_dataidx_map.txt, or a pickle."""
    if path.suffix != ".txt":
        return fedlab(path)
    found = re.findall(r"([\w-]+)['\"]?\s*:\s*\[([^\[\]]*)\]", path.read_text(encoding="utf-8"))
    return {client: [int(image) for image in own.replace(",", " ").split()] for client, own in found}


def leaf(paths: Sequence[Path]) -> tuple[Partition, dict[str, Any]]:
    """Read the training and the test images of LEAF: who owns which, and the arrays of a data set."""
    owned: dict[str, list[int]] = {}
    arrays = {}
    for part, path in zip(("train", "test"), paths, strict=True):
        data = json.loads(path.read_text(encoding="utf-8"))["user_data"]
        rows = [(user, x, y) for user, own in data.items() for x, y in zip(own["x"], own["y"], strict=True)]
        if part == "train":
            owned = {user: [] for user in data}
            for image, (user, _, _) in enumerate(rows):
                owned[user].append(image)
        pixels = np.array([x for _, x, _ in rows], dtype=np.float64)
        if pixels.ndim != 2 or isqrt(pixels.shape[1]) ** 2 != pixels.shape[1] or pixels.min() < 0 or pixels.max() > 1:
            raise ValueError(f"{path}: its images must be rows of as many numbers from 0 to 1 as a square has pixels")
        side = isqrt(pixels.shape[1])
        arrays[f"x_{part}"] = np.rint(255 * pixels).astype(np.uint8).reshape(-1, side, side)
        arrays[f"y_{part}"] = np.array([y for _, _, y in rows])
    return owned, arrays


def main() -> None:
    """Convert the files that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["fedscale", "fedlab", "fedml", "leaf"])
    parser.add_argument("file", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True, help="JSON file for data.partition")
    parser.add_argument("--names", type=Path, help="CSV file of the names of clients")
    parser.add_argument("--images", type=Path, help=".npz file for dataset; leaf alone")
    arguments = parser.parse_args()
    if len(arguments.file) != (2 if arguments.kind == "leaf" else 1):
        parser.error("leaf has a file of training and one of test images, the others have one file")
    if (arguments.images is not None) != (arguments.kind == "leaf"):
        parser.error("leaf needs --images, the others have none")
    try:
        if arguments.kind == "leaf":
            found, arrays = leaf(arguments.file)
            np.savez_compressed(arguments.images, **arrays)
        else:
            found = {"fedscale": fedscale, "fedlab": fedlab, "fedml": fedml}[arguments.kind](arguments.file[0])
        if not any(found.values()):
            parser.exit(2, f"{arguments.file[0]}: no client owns an image\n")
        arguments.out.write_text(json.dumps(dict(enumerate(found.values()))) + "\n")
        if arguments.names:
            with arguments.names.open("w", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows([("client", "name"), *enumerate(found)])
    except OSError as error:
        parser.exit(2, f"{error.filename}: {error.strerror}\n")
    except (AttributeError, KeyError, TypeError, ValueError) as error:  # of a file that is something else
        what = f"has no {error}" if isinstance(error, KeyError) else str(error)
        parser.exit(2, f"{', '.join(map(str, arguments.file))}: is not {arguments.kind}'s: {what}\n")
    none = sum(not own for own in found.values())
    print(f"{arguments.out}: {len(found)} clients, {sum(map(len, found.values()))} images; without one: {none}")


if __name__ == "__main__":
    main()
