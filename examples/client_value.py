"""See what each client contributed to a service's accuracy, by its Shapley value and by leaving it out.

    flmarket run quickstart --policy hqfa --out worth
    python examples/client_value.py worth/quickstart-.../hqfa/seed-0000 digits --rounds 3

docs/statistics.md says what the values are. They are noisy: one of 143 validation images is 0.007. The run is trained
again, which takes the data sets and the arithmetic of the run.
"""

import argparse
from pathlib import Path

import flmarket


def main() -> None:
    """Print the values of the run that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("service")
    parser.add_argument("--rounds", type=int, required=True, help="the first so many rounds")
    arguments = parser.parse_args()
    found = flmarket.contributions(arguments.run, service=arguments.service, rounds=arguments.rounds)
    print(found.to_string(index=False))
    clients = found.groupby("client")[["paid", "leave_one_out", "shapley"]].sum()
    print(f"correlations over {len(clients)} clients:")
    print(clients.corr().to_string(float_format="{:+.2f}".format))


if __name__ == "__main__":
    main()
