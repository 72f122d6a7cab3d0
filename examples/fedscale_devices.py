"""Convert FedScale's file of what phones can compute and send to a file for `clients.devices`.

    python examples/fedscale_devices.py client_device_capacity --clients 1000 --out devices.csv

The public file is a pickle of `{client: {"computation": ..., "communication": ...}}`: milliseconds for one image in
inference, and kbit/s, the same both ways. FedScale takes training for three times as long. A phone of speed 1 here is
one of 100 ms, so play it with `timeline.seconds_per_sample = 0.3` and `timeline.upload_seconds = 0`. Anything but
dictionaries, lists, numbers and text is refused, so nothing in the file is executed.
Source: Lai et al., "FedScale: benchmarking model and system performance of federated learning at scale", ICML 2022.
"""

import argparse
import csv
from itertools import islice
from pathlib import Path
from typing import Any

import plain_pickle


def device(phone: dict[str, Any]) -> tuple[str, str, str]:
    """Return the speed of a phone, and its bandwidths in Mbps, with six decimals."""
    speed, mbps = 100 / phone["computation"], phone["communication"] / 1000
    if not 1e-6 <= min(speed, mbps) <= max(speed, mbps) <= 1e6:
        raise ValueError(f"a phone has speed {speed} and {mbps} Mbps; both must be from 0.000001 to 1,000,000")
    return f"{speed:.6f}", f"{mbps:.6f}", f"{mbps:.6f}"


def main() -> None:
    """Convert the file that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--clients", type=int, help="phones to take, the first of the file; all if not given")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    if (arguments.clients or 1) < 1:
        parser.error("--clients must be above 0")
    try:
        phones = islice(plain_pickle.read(arguments.file).values(), arguments.clients)
        rows = [device(phone) for phone in phones]
        with arguments.out.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["speed", "download_mbps", "upload_mbps"])
            writer.writerows(rows)
    except OSError as error:
        parser.exit(2, f"{error.filename}: {error.strerror}\n")
    except (AttributeError, ArithmeticError, KeyError, TypeError, ValueError) as error:  # of a file that is another
        parser.exit(2, f"{arguments.file}: is not FedScale's file of devices: {type(error).__name__}: {error}\n")
    print(f"{arguments.out}: {len(rows)} devices")


if __name__ == "__main__":
    main()
