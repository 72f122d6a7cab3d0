"""``make golden``: compute digests and print them as JSON; with ``--renew``, write them into digests.json."""

import argparse
import json

from golden import FILE, SETTINGS, cases, digest, recorded


def main() -> None:
    """Compute the digests of the runs that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m golden", description=__doc__)
    parser.add_argument("scenario", nargs="*", help=f"one of {', '.join(SETTINGS)}; all if none is given")
    parser.add_argument("--policy", action="append", help="one of the policies; all if none is given")
    parser.add_argument("--renew", action="store_true", help="write them into digests.json")
    given = parser.parse_args()
    found: dict[str, dict[str, str]] = {}
    for case in cases():
        if case.scenario in (given.scenario or SETTINGS) and case.policy in (given.policy or [case.policy]):
            found.setdefault(case.scenario, {})[case.policy] = digest(case)
    print(json.dumps(found, indent=1, sort_keys=True))
    if given.renew:
        kept = recorded()
        for scenario, by_policy in found.items():
            kept[scenario] = {**kept.get(scenario, {}), **by_policy}
        FILE.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
