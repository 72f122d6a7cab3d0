"""Many runs' logs in one file: CSV with the text of the runs' own files, or Parquet (extra ``parquet``)."""

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from flmarket.analysis.log_frames import BadTableError, TableName, having, in_units, read_table, write_frame, written
from flmarket.analysis.results.setting import settings_of
from flmarket.core.errors import InputError
from flmarket.core.files import asked_for, replacing
from flmarket.core.installation import require_extra
from flmarket.core.tracking import tracked
from scenarios.logs.columns import ALL_TABLES
from scenarios.logs.directory import META, RunDirectory, require_outside_runs
from scenarios.logs.finding import Sources, complete_runs

KEYS = ("scenario", "policy", "seed")  # what stands in front of a row, where rows of many runs are together


def export(
    sources: Sources,
    target: IO[str] | Path,  # an open text file, or one to write, which is replaced only when the new one is complete
    table: TableName = "rounds",  # the table to write
    notify: Callable[[str], None] = lambda _: None,  # called with a line if some runs do not have the table
    damaged: Callable[[str], None] | None = None,  # as in ``complete_runs``
) -> int:
    """Write one table of all complete runs below the sources that have it, with the run in front of each row.

    In front stand ``scenario`` (the name with its hash, so that sweep points stay apart), ``policy``, ``seed``, and a
    column for each key that was swept or in which scenarios of one name differ, empty for other scenarios. The
    service's own policy becomes ``service_policy``. Where a scenario has groups of clients, a column ``group`` follows
    ``client``, empty for clients of none.
    """
    if isinstance(target, Path):
        require_outside_runs(target)
        with asked_for(target) as file:
            return export(sources, file, table, notify, damaged)
    runs = having(complete_runs(sources, damaged), table, notify)
    fronts, groups = identities(runs)
    fronts = fronts.map(sweep_text)
    for place, run in enumerate(tracked(runs, "runs")):
        frame = with_identity(fronts.iloc[[place]], written(read_table(run, table), table), groups[place])
        write_frame(frame, target, header=place == 0)
    return len(runs)


def export_parquet(
    sources: Sources,
    path: Path,
    table: TableName = "rounds",
    notify: Callable[[str], None] = lambda _: None,
    damaged: Callable[[str], None] | None = None,
) -> int:
    """Write as ``export`` does; numbers are 64-bit, what is empty in the logs is null. One run is in memory at a time.

    A swept key has numbers or booleans if all of its values are, else the text that it has in CSV.
    """
    require_extra("parquet", "a Parquet file", "pyarrow", "pyarrow")
    import pyarrow as pa
    from pyarrow import parquet

    require_outside_runs(path)
    runs = having(complete_runs(sources, damaged), table, notify)
    fronts, groups = identities(runs)
    fronts = fronts.convert_dtypes()
    for name in fronts.select_dtypes(object):
        fronts[name] = fronts[name].map(sweep_text, na_action="ignore").convert_dtypes()
    # pandas' Int64 may be missing
    types = {it.name: it.type.dtype.replace("int64", "Int64") for it in ALL_TABLES[table].columns}
    schema = None
    try:
        with replacing(path) as file, ExitStack() as stack:
            for place, run in enumerate(tracked(runs, "runs")):
                frame = in_units(read_table(run, table), table).astype(types)
                whole = with_identity(fronts.iloc[[place]], frame, groups[place])
                part = pa.Table.from_pandas(whole, schema, preserve_index=False)
                part = part.replace_schema_metadata()  # which would bring pandas' own types back
                if schema is None:
                    schema = part.schema
                    writer = stack.enter_context(parquet.ParquetWriter(file, schema))
                writer.write_table(part)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error}") from error
    return len(runs)


def identities(runs: Sequence[RunDirectory]) -> tuple[pd.DataFrame, list[list[str] | None]]:
    """Return what stands in front of runs' rows, a row for each run, and the group of each client of each run.

    In front stand ``KEYS``, and a column for each key that differs. Groups are None where no scenario has any.

    The scenario comes with its hash. Keys are those of sweeps, and those that distinguish scenarios of one name; runs
    of other scenarios have NaN there.
    """
    settings = settings_of(runs)
    names = dict.fromkeys(key for setting in settings.values() for key in setting.differing)
    rows = []
    for run in runs:
        meta, values = run.meta(), settings[run.folder].differing
        row = [f"{meta['scenario']}-{meta['hash']}", meta["policy"], meta["seed"]]
        row += [values.get(name, np.nan) for name in names]
        if not all(value.isprintable() for value in (*row, *names) if isinstance(value, str)):
            raise BadTableError(f"{run.path / META}: cannot be read: a name or a swept value has control characters")
        rows.append(row)
    clients = {folder: setting.scenario.clients for folder, setting in settings.items()}
    grouped = any(it.groups for it in clients.values())
    groups = {folder: it.group_names() for folder, it in clients.items() if grouped}
    front = pd.DataFrame(rows, columns=[*KEYS, *names], dtype=object)
    return front, [groups.get(run.folder) for run in runs]


def with_identity(identity: pd.DataFrame, frame: pd.DataFrame, groups: Sequence[str] | None) -> pd.DataFrame:
    """Return a run's table behind its line of ``identities``; the service's policy is called ``service_policy``."""
    if groups is not None and "client" in frame:
        group = pd.to_numeric(frame["client"]).map(dict(enumerate(groups))).fillna("").astype("string")
        frame = frame.copy(deep=False)
        frame.insert(list(frame).index("client") + 1, "group", group)
    return identity.merge(frame.rename(columns={"policy": "service_policy"}), how="cross")


def sweep_text(value: Any) -> str:
    """Return a swept value as a table's text: text as it is, anything else as JSON, and nothing where there is none."""
    if value is None or value != value:
        return ""
    return value if isinstance(value, str) else json.dumps(value)
