"""A run's files as frames, money and time in whole millionths, and the numbers that are needed with them."""

import json
import tomllib
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

LABELS = 10  # of every data set here
TEST_IMAGES = {
    "digits": 359, "strokes": 2_000, "scribbles": 2_000, "mnist": 10_000, "fashion-mnist": 10_000,
    "emnist-digits": 40_000,
}  # fmt: skip
TRAINING_IMAGES = {"digits": 1_438, "strokes": 12_000, "scribbles": 12_000}

PRINTED = {
    "published": (-0.1922, 0.2613, 0.00063, 0.7084, 0.3189, 1.233),
    "jiao": (0.361, 4.348, 0.001, 0.993, 0.31, 1.743),
}
"""eta1 to eta6 of eq. (6) as the paper has them, and as Jiao et al. do."""

FITTED = {
    "digits": (0.455051, 0.025981, 1.0, 0.959275, 0.0, 2.18841),
    "strokes": (0.62687, 5.02476, 0.0018779, 0.908244, 0.0, 1.42826),
    "scribbles": (0.615585, 5.73014, 0.000952553, 0.742383, 0.0, 1.44763),
    "mnist": (0.357027, 0.0133437, 1.0, 0.958462, 0.0, 1.92828),
    "fashion-mnist": (0.342117, 0.0205745, 1.0, 0.789781, 0.0, 2.19727),
    "emnist-digits": (0.345259, 0.0133433, 1.0, 0.95442, 0.0, 1.95271),
}
"""The same, fitted: docs/decisions/dqi.md with all digits."""

MICRO = 1_000_000
MONEY = (
    "budget", "offered", "spent", "mean_bid", "mean_payment", "bid", "payment", "paid", "cost", "profit",
)  # fmt: skip
TIME = ("sim_time", "start", "end", "makespan")


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
    def services(self) -> dict[str, dict[str, Any]]:
        return {service["name"]: service for service in self.scenario["services"]}

    @cached_property
    def rounds(self) -> pd.DataFrame:
        return self._table("rounds")

    @cached_property
    def offers(self) -> pd.DataFrame:
        return self._table("offers")

    @cached_property
    def events(self) -> pd.DataFrame:
        return self._table("events")

    @cached_property
    def truth(self) -> pd.DataFrame | None:
        """The data that clients really have, row by row as in ``offers``; None where they are truthful."""
        return self._table("clients") if (self.path / "clients.csv").exists() else None

    @cached_property
    def begins(self) -> pd.Series:
        """When each round begins: when the one before ends."""
        ends = self.rounds.groupby("round").sim_time.first()
        return ends.shift(fill_value=0.0)

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

    def tested(self, dataset: str) -> int:
        """Return how many test images an evaluation looks at."""
        return self._looked_at(TEST_IMAGES[dataset])

    def validated(self, dataset: str) -> int:
        """Return how many images ``accuracy`` is the share of: of those held out, else of the test images."""
        return self._looked_at(int(self.share * TRAINING_IMAGES[dataset])) if self.share else self.tested(dataset)

    def served(self, number: int, service: str) -> pd.DataFrame:
        """Return the offers of a service that were served in a round."""
        return self._served.get((number, service), self.offers.iloc[:0])

    def eta(self, service: str) -> tuple[float, ...]:
        """Return the six parameters of eq. (6)."""
        return PRINTED.get(self.scenario["dqi"]) or FITTED[self.services[service]["dataset"]]

    def epochs(self, service: str) -> int:
        return int(self.meta["training"][self.services[service]["dataset"]]["local_epochs"])

    @cached_property
    def _served(self) -> dict[Any, pd.DataFrame]:
        return dict(list(self.offers[self.offers.outcome == "served"].groupby(["round", "service"])))

    def _looked_at(self, images: int) -> int:
        return min(images, self.scenario["training"].get("eval_samples", images))

    def _table(self, name: str) -> pd.DataFrame:
        # pandas parses every number to the nearest double from version 3 on.
        table = pd.read_csv(self.path / f"{name}.csv", keep_default_na=False, na_values=[""])
        for column in table.columns.intersection([*MONEY, *TIME]):
            table[column] = (table[column] * MICRO).round()
        return table
