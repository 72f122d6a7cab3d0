"""The rule of ``flmarket verify`` on the work of continuous markets, which outlasts rounds."""

from collections.abc import Iterator

import numpy as np

from des.log_records import ModelReport
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.verification.findings import Finding, Rows
from flmarket.analysis.verification.time_rules import differing_events
from scenarios.logs.columns import EVENTS


def work(logs: Logs) -> Iterator[Finding]:
    """Where work outlasts rounds: each core serves one job at a time, what is delivered is paid, models are due."""
    followed = logs.ongoing
    if followed is None or logs.models is None:
        return
    offers, rounds, count = logs.rows["offers"], logs.rows["rounds"], len(logs.places)
    yield from offers.wrong(followed.offers["barred"], "the service cannot have this client now, but makes an offer")
    wanted = {name: of for name, of in followed.offers.items() if name != "barred"}
    yield from offers.differing(wanted, "by the work that goes on it should be")
    yield from rounds.differing({"sim_time": np.repeat(followed.closed, count)}, "services decide again at")
    columns = dict(zip(EVENTS.names, _columns(followed.events, len(EVENTS.names)), strict=True))
    yield from differing_events(logs, Rows("events", columns))
    models = logs.rows["models"]
    if len(models) != len(followed.models):
        yield Finding(f"models.csv has {len(models)} models where the updates that arrive make {len(followed.models)}")
        return
    right = zip(ModelReport._fields, _columns(followed.models, len(ModelReport._fields)), strict=True)
    yield from models.differing(dict(right), "by the updates that arrive it should be")


def _columns(rows: list[tuple[object, ...]] | list[ModelReport], count: int) -> list[np.ndarray]:
    if not rows:
        return [np.empty(0)] * count
    return [
        np.array(values, dtype=object if any(isinstance(it, str) for it in values) else None)
        for values in zip(*rows, strict=True)
    ]
