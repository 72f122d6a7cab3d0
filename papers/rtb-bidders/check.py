"""What is bid and paid against the formulas, and the levels and the table of README.md.

``python papers/rtb-bidders/check.py`` finds the level at which each rule buys most images with training seeds, and
plays each rule at its level with 20 others; then it plays two rules where all owners have the same images.
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
ALIKE: dict[str, Any] = {"clients.groups": [], "clients.data_size": [2750]}
"""Settings with which all owners have as many images as they have on average."""


def played(
    rule: str, options: dict[str, Any], seeds: Iterable[int] = (0,), owners: dict[str, Any] | None = None
) -> Any:
    """Return the offers of runs in which the buyer follows a rule."""
    buyer = {"services.buyer.policy": rule, "services.buyer.policy_options": options}
    scenario = flmarket.load(HERE / "scenario.toml", {"runs": [], **(owners or {}), **buyer})
    with TemporaryDirectory() as out:
        return flmarket.run(scenario, seeds=seeds, out=out, progress=False).offers


def at(rule: str, level: float) -> dict[str, Any]:
    """Return the options of a rule at a level."""
    return {"level": float(level), **({"c": C} if rule == "rtb-ortb" else {})}


def images(rule: str, options: dict[str, Any], seeds: Iterable[int], owners: dict[str, Any] | None = None) -> Any:
    """Return the images that the buyer gets with each seed."""
    offers = played(rule, options, seeds, owners)
    won = offers[(offers.service == "buyer") & offers.paid.notna()]
    return won.groupby("seed").data_size.sum().reindex(list(seeds), fill_value=0).to_numpy()


def prices_in(seeds: Iterable[int]) -> Any:
    """Return each owner's images, and the price at which a buyer gets it: the highest of the rivals' offers."""
    offers = played("rtb-const", at("rtb-const", 0.0), seeds).query("service != 'buyer'")
    owners = offers.groupby(["seed", "client"])
    return owners.agg(images=("data_size", "first"), price=("payment", "max"))


def check_bids_follow_the_formulas() -> None:
    """Owners have 500 to 5,000 images, 2,750 on average."""
    for rule, level, formula in (
        ("rtb-const", 0.03, lambda _, b: b - 0.03),
        ("rtb-mcpc", 0.00002, lambda u, b: b - 0.00002 * u),
        ("rtb-lin", 0.011, lambda u, b: b - 0.011 * u / 2750),
        # Where the derivative of u b / (C + b) is lambda times that of b^2 / (C + b), with the level for 2750 / lambda.
        ("rtb-ortb", 0.2, lambda u, b: b * (b + 2 * C) - C * 0.2 * u / 2750),
    ):
        offers = played(rule, at(rule, level)).query("service == 'buyer'")
        assert offers.paid.sum() < 2.5  # what money is left cuts no bid
        assert offers.data_size.nunique() > 3
        assert np.allclose(formula(offers.data_size, offers.payment), 0, atol=1e-6)


def check_the_second_price_is_paid() -> None:
    offers = played("rtb-lin", at("rtb-lin", 0.08))
    for _, of_one in offers.groupby("client"):
        payments = of_one.payment.sort_values().to_list()
        won = of_one[of_one.paid.notna()]
        assert won.payment.tolist() == payments[-1:]
        assert won.paid.tolist() == payments[-2:-1]


def tuned(rule: str, owners: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the options with which a rule buys most images in training."""
    return max((at(rule, it) for it in GRIDS[rule]), key=lambda it: images(rule, it, TRAINING, owners).mean())


def main() -> None:
    options = {rule: tuned(rule) for rule in GRIDS}
    known = prices_in(TRAINING)
    options["rtb-mcpc"] = {"level": float(f"{known.price.sum() / known.images.sum():.3g}")}
    options["rtb-rlb"] = {"prices": known.price.quantile((np.arange(40) + 0.5) / 40).round(3).to_list()}
    bought = {rule: images(rule, its, SEEDS) for rule, its in options.items()}
    for rule, own in bought.items():
        less = flmarket.mean_interval(bought["rtb-lin"] - own).text(",.0f")
        behind = "" if rule == "rtb-lin" else f", {less} less"
        print(f"{rule} with {options[rule]}: {own.mean():,.0f} images{behind}")
    own = played("rtb-rlb", options["rtb-rlb"], SEEDS).query("service == 'buyer'")
    turn, average = own.groupby("seed").cumcount(), own.payment / own.data_size * 2750
    first, last = average[turn < 30].mean(), average[turn >= 270].mean()
    print(f"rtb-rlb for an average owner: {first:.3f} in the first tenth, {last:.3f} in the last")
    options["rtb-lin"] = tuned("rtb-lin", ALIKE)
    rlb, lin = (images(rule, options[rule], SEEDS, ALIKE) for rule in ("rtb-rlb", "rtb-lin"))
    more = flmarket.mean_interval(rlb - lin).text(",.0f")
    print(
        f"where owners are alike: rtb-rlb {rlb.mean():,.0f} images, {more} more than rtb-lin with {options['rtb-lin']}"
    )


if __name__ == "__main__":
    main()
