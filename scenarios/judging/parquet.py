"""Many runs' logs as one Parquet file, with pyarrow (extra ``parquet``). One run is in memory at a time."""

from collections.abc import Sequence
from pathlib import Path

from fl.errors import InputError
from fl.files import replacing
from scenarios.judging.export import KEYS, Table, complete_runs, keys
from scenarios.logs.writing import TABLES

_WHOLE = {"round", "client", "core", "data_size", "wanted", "served", "refused", "samples"}
_WORDS = {"service", "dataset", "policy", "status", "outcome", "event"}


def export_parquet(sources: Sequence[Path], path: Path, table: Table = "rounds") -> int:
    """Write one table of all complete runs below the sources, with scenario, policy and seed in front of each row.

    Columns are as in ``export``; numbers are 64-bit, what is empty in the logs is null.

    Returns:
        the number of runs exported.

    Raises:
        InputError: pyarrow is not installed, there is no complete run, or the file cannot be written.
    """
    try:
        import pyarrow as pa
        from pyarrow import csv, parquet
    except ImportError as error:
        raise InputError("--parquet needs pyarrow: pip install 'flmarket[parquet]'") from error
    names = ["service_policy" if name == "policy" else name for name in TABLES[table]]
    types = {
        name: pa.int64() if name in _WHOLE else pa.string() if column in _WORDS else pa.float64()
        for name, column in zip(names, TABLES[table], strict=True)
    }
    schema = pa.schema([*zip(KEYS, (pa.string(), pa.string(), pa.int64()), strict=True), *types.items()])
    runs = complete_runs(sources)
    try:
        with replacing(path) as file, parquet.ParquetWriter(file, schema) as writer:
            for run in runs:
                rows = csv.read_csv(
                    run.path / f"{table}.csv",
                    csv.ReadOptions(column_names=names, skip_rows=1),
                    convert_options=csv.ConvertOptions(column_types=types, strings_can_be_null=True),
                )
                scenario, policy, seed = keys(run)
                for place, value in enumerate((scenario, policy, int(seed))):
                    column = pa.array([value] * len(rows), schema.field(place).type)
                    rows = rows.add_column(place, schema.field(place), column)
                writer.write_table(rows)
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(f"{path}: cannot be written: {error}") from error
    return len(runs)
