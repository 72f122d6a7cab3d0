"""What is bid and paid against the formulas, and the levels and the table of README.md.

``python papers/rtb-bidders/check.py`` finds the level at which each rule buys most images with training seeds, and
plays each rule at its level with 20 others.
"""

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import flmarket

HERE = Path(__file__).parent
SHORT: dict[str, Any] = {}
"""Settings with which the scenario plays in a second: it does."""

C = 0.05  # of ortb
GRIDS = {
    "rtb-const": np.arange(0.02, 0.2, 0.02),
    "rtb-rand": np.arange(0.04, 0.4, 0.04),
    "rtb-lin": np.arange(0.02, 0.2, 0.02),
    "rtb-ortb": np.arange(0.04, 0.8, 0.08),
}
TRAINING, SEEDS = range(100, 105), range(20)


def played(rule: str, level: float, seeds: Iterable[int] = (0,)) -> Any:
    """Return the offers of runs in which the buyer follows a rule."""
    options = {"level": float(level), **({"c": C} if rule == "rtb-ortb" else {})}
    buyer = {"services.buyer.policy": rule, "services.buyer.policy_options": options}
    scenario = flmarket.load(HERE / "scenario.toml", {"runs": [], **buyer})
    with TemporaryDirectory() as out:
        return flmarket.run(scenario, seeds=seeds, out=out, progress=False).offers


def images(rule: str, level: float, seeds: Iterable[int]) -> Any:
    """Return the images that the buyer gets with each seed."""
    offers = played(rule, level, seeds)
    won = offers[(offers.service == "buyer") & offers.paid.notna()]
    return won.groupby("seed").data_size.sum().reindex(list(seeds), fill_value=0).to_numpy()


def price_of_an_image(seeds: Iterable[int]) -> float:
    """Return what an image costs who buys from all owners: each takes the highest of the rivals' offers."""
    offers = played("rtb-const", 0.0, seeds).query("service != 'buyer'")
    owners = offers.groupby(["seed", "client"])
    return float(owners.payment.max().sum() / owners.data_size.first().sum())


def check_bids_follow_the_formulas() -> None:
    """Owners have 500 to 5,000 images, 2,750 on average."""
    for rule, level, formula in (
        ("rtb-const", 0.03, lambda _, b: b - 0.03),
        ("rtb-mcpc", 0.00002, lambda u, b: b - 0.00002 * u),
        ("rtb-lin", 0.011, lambda u, b: b - 0.011 * u / 2750),
        # Where the derivative of u b / (C + b) is lambda times that of b^2 / (C + b), with the level for 2750 / lambda.
        ("rtb-ortb", 0.2, lambda u, b: b * (b + 2 * C) - C * 0.2 * u / 2750),
    ):
        offers = played(rule, level).query("service == 'buyer'")
        assert offers.paid.sum() < 2.5  # what money is left cuts no bid
        assert offers.data_size.nunique() > 3
        assert np.allclose(formula(offers.data_size, offers.payment), 0, atol=1e-6)


def check_the_second_price_is_paid() -> None:
    offers = played("rtb-lin", 0.08)
    for _, of_one in offers.groupby("client"):
        payments = of_one.payment.sort_values().to_list()
        won = of_one[of_one.paid.notna()]
        assert won.payment.tolist() == payments[-1:]
        assert won.paid.tolist() == payments[-2:-1]


def main() -> None:
    levels = {rule: max(grid, key=lambda it, r=rule: images(r, it, TRAINING).mean()) for rule, grid in GRIDS.items()}
    levels["rtb-mcpc"] = price_of_an_image(TRAINING)
    bought = {rule: images(rule, level, SEEDS) for rule, level in levels.items()}
    for rule, own in bought.items():
        less = flmarket.mean_interval(bought["rtb-lin"] - own).text(",.0f")
        behind = "" if rule == "rtb-lin" else f", {less} less"
        print(f"{rule} at {levels[rule]:.3g}: {own.mean():,.0f} images{behind}")


if __name__ == "__main__":
    main()
