"""Renews names.txt."""

import sys

from api import CHANGELOG, FILE, changelog, public, recorded


def main() -> None:
    """Write the interface down, unless it has changed and the changelog has not."""
    now, lines = changelog(), public()
    if FILE.exists():
        before, known = recorded()
        if lines != known and now == before:
            sys.exit(f"{CHANGELOG.name} says nothing of this change yet")
    FILE.write_text("\n".join([now, *lines]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
