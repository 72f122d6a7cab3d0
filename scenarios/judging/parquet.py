"""Many runs' logs as one Parquet file, with pyarrow (extra ``parquet``). One run is in memory at a time."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from flmarket.core.errors import InputError, shortened
from flmarket.core.extras import needs_extra
from flmarket.core.files import replacing
from flmarket.core.tracking import tracked
from scenarios.judging.tables import (
    KEYS,
    TableName,
    fronts,
    having,
    keys,
    names_beside_keys,
    require_plain,
    sweep_text,
    swept,
)
from scenarios.logs.columns import ALL_TABLES
from scenarios.logs.directory import RunDirectory
from scenarios.logs.finding import complete_runs
from scenarios.logs.outside import require_outside_runs
from scenarios.logs.table import Table


def export_parquet(
    sources: Sequence[Path],
    path: Path,
    table: TableName = "rounds",
    notify: Callable[[str], None] = lambda _: None,
    damaged: Callable[[str], None] | None = None,
) -> int:
    """Write one table of all complete runs below the sources that have it, with the run in front of each row.

    Columns are as in ``export``; numbers are 64-bit, what is empty in the logs is null. A swept key has numbers or
    booleans if all of its values are, else the text that it has in CSV.
    """
    with needs_extra("parquet", "--parquet", "pyarrow", modules=["pyarrow"]):
        import pyarrow as pa
        from pyarrow import parquet
    require_outside_runs(path)
    runs = having(complete_runs(sources, damaged), table, notify)
    shared = ALL_TABLES[table]
    types = {
        name: pa.type_for_alias(column.type.dtype)
        for name, column in zip(names_beside_keys(shared), shared.columns, strict=True)
    }
    sweeps = [run.sweep() for run in runs]
    fronts(runs)  # refuses what a spreadsheet would act on
    front = dict(zip(KEYS, (pa.string(), pa.string(), pa.int64()), strict=True))
    for name in swept(sweeps):
        front[name] = pa.type_for_alias(_dtype([sweep[name] for sweep in sweeps if name in sweep]))
    schema = pa.schema([*front.items(), *types.items()])
    try:
        with replacing(path) as file, parquet.ParquetWriter(file, schema) as writer:
            for run, sweep in zip(tracked(runs, "runs"), sweeps, strict=True):
                rows = _read(run, shared, types)
                values = dict(zip(KEYS, keys(run), strict=True)) | sweep
                for place, (name, type_) in enumerate(front.items()):
                    value = values.get(name)
                    if pa.types.is_string(type_) and value is not None:
                        value = sweep_text(value)
                    rows = rows.add_column(place, schema.field(place), pa.array([value] * len(rows), type_))
                writer.write_table(rows)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error}") from error
    return len(runs)


def _dtype(values: Sequence[Any]) -> str:
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return "bool"
    if kinds == {int}:
        return "int64"
    return "float64" if kinds <= {int, float} else "string"


def _read(run: RunDirectory, table: Table, types: Mapping[str, Any]) -> Any:
    """Return a run's table as pyarrow has it, with the given names and types; columns that it lacks are null."""
    from pyarrow import ArrowInvalid, csv
    from pyarrow import types as types_of

    # A service may be called NA.
    convert = csv.ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=True)
    try:
        options = csv.ReadOptions(column_names=list(types), skip_rows=1)
        rows = csv.read_csv(table.check(run.path), options, convert_options=convert)
    except (OSError, ArrowInvalid) as error:
        raise InputError(f"{table.path(run.path)}: cannot be read: {shortened(error)}") from error
    for column in rows.columns:
        if types_of.is_string(column.type):
            require_plain(column.drop_null().unique().to_pylist(), str(table.path(run.path)))
    return rows
