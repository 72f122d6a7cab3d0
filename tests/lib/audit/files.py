"""A run's files, read with the standard library; and the numbers that are needed beside them."""

import csv
import json
import tomllib
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

Row = dict[str, str]

MICRO = 1_000_000

TEST_IMAGES = {"digits": 359, "strokes": 2_000, "scribbles": 2_000, "mnist": 10_000, "fashion-mnist": 10_000}
TEST_IMAGES["emnist-digits"] = 40_000
"""In the test splits, as `flmarket datasets` lists them."""

TRAINING_IMAGES = {"digits": 1_438, "strokes": 12_000, "scribbles": 12_000, "mnist": 60_000, "fashion-mnist": 60_000}
TRAINING_IMAGES["emnist-digits"] = 240_000
"""In the training splits, likewise."""

PRINTED = (-0.1922, 0.2613, 0.00063, 0.7084, 0.3189, 1.233)
"""eta1 to eta6 as the paper has them."""

FITTED = {
    "digits": (0.455051, 0.025981, 1.0, 0.959275, 0.0, 2.18841),
    "strokes": (0.62687, 5.02476, 0.0018779, 0.908244, 0.0, 1.42826),
    "scribbles": (0.615585, 5.73014, 0.000952553, 0.742383, 0.0, 1.44763),
    "mnist": (0.357027, 0.0133437, 1.0, 0.958462, 0.0, 1.92828),
    "fashion-mnist": (0.342117, 0.0205745, 1.0, 0.789781, 0.0, 2.19727),
    "emnist-digits": (0.345259, 0.0133433, 1.0, 0.95442, 0.0, 1.95271),
}
"""The same, fitted: docs/decisions/dqi.md with all digits."""

LABELS = 10
"""Of every data set above."""


def micro(text: str) -> int:
    """Return an amount of money with exactly six decimals in whole millionths."""
    units, _, decimals = text.partition(".")
    if len(decimals) != 6 or not (units + decimals).isdecimal():
        raise ValueError(f"{text!r} is no amount of money")
    return int(units) * MICRO + int(decimals)


@dataclass(frozen=True)
class Run:
    """One run's directory."""

    path: Path

    @cached_property
    def meta(self) -> dict[str, Any]:
        return json.loads((self.path / "meta.json").read_text())

    @cached_property
    def scenario(self) -> dict[str, Any]:
        return tomllib.loads((self.path / "scenario.toml").read_text())

    @cached_property
    def rounds(self) -> list[Row]:
        return self._table("rounds")

    @cached_property
    def offers(self) -> list[Row]:
        return self._table("offers")

    @cached_property
    def events(self) -> list[Row]:
        return self._table("events")

    @cached_property
    def clients(self) -> list[Row] | None:
        """What clients really have, row by row as in ``offers``; None where they are truthful."""
        return self._table("clients") if (self.path / "clients.csv").exists() else None

    @cached_property
    def services(self) -> dict[str, dict[str, Any]]:
        return {service["name"]: service for service in self.scenario["services"]}

    @cached_property
    def offers_of(self) -> dict[tuple[int, str], list[Row]]:
        """Offers by round and service."""
        found = defaultdict(list)
        for row in self.offers:
            found[int(row["round"]), row["service"]].append(row)
        return found

    @cached_property
    def true_size(self) -> dict[int, int]:
        """How many images the client of an offer trains on, by the offer's place; a truthful client says so."""
        truth = self.clients if self.clients is not None else self.offers
        return {id(row): int(true["data_size"]) for row, true in zip(self.offers, truth, strict=True)}

    @property
    def numbers(self) -> range:
        """The rounds that were played."""
        return range(1, len(self.rounds) // len(self.services) + 1)

    @property
    def mechanism(self) -> str:
        return str(self.scenario.get("market", {}).get("mechanism", "pay-as-offered"))

    @property
    def surrogate(self) -> bool:
        return bool(self.meta["backend"] == "surrogate")

    @property
    def share(self) -> Fraction:
        """The share of the training images that is held out, as it is written; 0 where nothing is trained."""
        return Fraction(0) if self.surrogate else Fraction(str(self.scenario["training"]["validation"]))

    def held_out(self, dataset: str) -> int:
        """Return how many training images of a data set are held out."""
        return int(self.share * TRAINING_IMAGES[dataset])

    def looked_at(self, images: int) -> int:
        """Return how many of some images an evaluation looks at."""
        return min(images, self.scenario["training"].get("eval_samples", images))

    def eta(self, dataset: str) -> tuple[float, ...]:
        """Return the six parameters of eq. (6)."""
        return PRINTED if self.scenario["dqi"] == "published" else FITTED[dataset]

    def epochs(self, dataset: str) -> int:
        """Return the local epochs that a data set is trained for."""
        return int(self.meta["training"][dataset]["local_epochs"])

    def _table(self, name: str) -> list[Row]:
        with (self.path / f"{name}.csv").open(newline="") as file:
            return list(csv.DictReader(file))
