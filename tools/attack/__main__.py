"""``make attack``: see ``--help``."""

import argparse
import os
import sys
from pathlib import Path

from attack import damage, disks, extensions, kills, options, pairs, plugins, runners, screens, texts
from attack.campaign import Record, run, table, try_one
from support.leftovers import prepare

CAMPAIGNS = tuple(
    campaign
    for module in (texts, options, damage, kills, runners, pairs, plugins, extensions, disks, screens)
    for campaign in module.CAMPAIGNS
)


def main() -> int:
    """Attack, print what went wrong as it happens, and end with a table; the status is 1 if anything did."""
    parser = argparse.ArgumentParser(prog="make attack", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long; a later call continues")
    parser.add_argument("--seed", type=int, default=0, help="another seed makes other attempts")
    parser.add_argument("--record", type=Path, default=Path(".attack/outcomes.jsonl"), help="the file of outcomes")
    parser.add_argument("--only", action="append", choices=[campaign.name for campaign in CAMPAIGNS])
    parser.add_argument("--number", type=int, help="make this one attempt of --only again, without recording it")
    given = parser.parse_args()
    prepare()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    chosen = [campaign for campaign in CAMPAIGNS if not given.only or campaign.name in given.only]
    if given.number is not None:
        wrong = [problem for campaign in chosen for problem in try_one(campaign, given.seed, given.number)[0]]
        print("\n".join(wrong) or "nothing went wrong")
        return bool(wrong)
    record = Record(given.record)
    try:
        run(chosen, record, seed=given.seed, minutes=given.minutes, report=lambda text: print(text, flush=True))
    except KeyboardInterrupt:
        print("interrupted; the same command continues", file=sys.stderr)
    print(table(chosen, record))
    return any(record.wrong[campaign.name] for campaign in chosen)


if __name__ == "__main__":
    sys.exit(main())
