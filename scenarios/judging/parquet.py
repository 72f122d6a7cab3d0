"""Many runs' logs as one Parquet file, with pyarrow (extra ``parquet``). One run is in memory at a time."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fl.errors import InputError, shortened
from fl.extras import needs_extra
from fl.files import replacing
from scenarios.judging.tables import KEYS, TableName, keys, names_beside_keys
from scenarios.logs.columns import TABLES
from scenarios.logs.directory import RunDirectory, complete_runs


def export_parquet(sources: Sequence[Path], path: Path, table: TableName = "rounds") -> int:
    """Write one table of all complete runs below the sources, with scenario, policy and seed in front of each row.

    Columns are as in ``export``; numbers are 64-bit, what is empty in the logs is null.

    Returns:
        the number of runs exported.

    Raises:
        InputError: pyarrow is not installed, there is no complete run, or the file cannot be written.
    """
    with needs_extra("parquet", "--parquet", "pyarrow", modules=["pyarrow"]):
        import pyarrow as pa
        from pyarrow import parquet
    columns = TABLES[table].columns
    types = {
        name: pa.type_for_alias(column.type.dtype)
        for name, column in zip(names_beside_keys(table), columns, strict=True)
    }
    schema = pa.schema([*zip(KEYS, (pa.string(), pa.string(), pa.int64()), strict=True), *types.items()])
    runs = complete_runs(sources)
    try:
        with replacing(path) as file, parquet.ParquetWriter(file, schema) as writer:
            for run in runs:
                rows = _read(run, table, types)
                for place, value in enumerate(keys(run)):
                    column = pa.array([value] * len(rows), schema.field(place).type)
                    rows = rows.add_column(place, schema.field(place), column)
                writer.write_table(rows)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error}") from error
    return len(runs)


def _read(run: RunDirectory, name: TableName, types: Mapping[str, Any]) -> Any:
    """Return a run's table as pyarrow has it, with the given names and types."""
    from pyarrow import ArrowInvalid, csv

    table = TABLES[name]
    # A service may be called NA.
    convert = csv.ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=True)
    try:
        return csv.read_csv(
            table.check(run.path), csv.ReadOptions(column_names=list(types), skip_rows=1), convert_options=convert
        )
    except (OSError, ArrowInvalid) as error:
        raise InputError(f"{table.path(run.path)}: cannot be read: {shortened(error)}") from error
