"""Scenarios as earlier versions of flmarket wrote them into run directories, before there was a validation split.

Their runs measured accuracy on test images, which is ``training.validation = 0`` now. A scenario.toml without that key
says so if its run trained networks; in a file that a user wrote, the key has its default. The hash of a scenario
without a split is what it was, so that complete runs of earlier versions are found.
"""

import re

_LINE = "validation = 0.0\n"
_WITHOUT = re.compile(r'^(backend = "real"\n(?:eval_samples = [0-9]+\n)?)(?=device = )', re.MULTILINE)


def with_split(text: str) -> str:
    """Return the text of a run's scenario.toml with the key of the validation split, if networks were trained."""
    return _WITHOUT.sub(rf"\1{_LINE}", text, count=1)


def before_splits(text: str) -> str:
    """Return the text of a scenario.toml as it was written before there were validation splits, if it has none."""
    return re.sub(rf"^{re.escape(_LINE)}(?=device = )", "", text, count=1, flags=re.MULTILINE)
