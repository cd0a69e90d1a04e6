"""From rows to typed tables in Parquet and CSV. Units are in the column names; null is null, never 0."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from goodput.analysis.schema.base import SCHEMA_VERSION
from goodput.analysis.schema.planned import Config
from goodput.analysis.schema.sweep import SpecDocument

Row = dict[str, Any]
Columns = Mapping[str, pa.DataType]

TEXT, INT, FLOAT, BOOL = pa.string(), pa.int64(), pa.float64(), pa.bool_()


def build(rows: Sequence[Row], columns: Columns, spec: SpecDocument) -> pa.Table:
    """The table of ``rows``, each of which has every column but the first two: schema version and evidence."""
    schema = pa.schema([("v", INT), ("evidence", TEXT), *columns.items()])
    fixed = {"v": SCHEMA_VERSION, "evidence": spec.evidence}
    for row in rows:
        assert row.keys() == columns.keys(), sorted(row.keys() ^ columns.keys())
    whole = [fixed | row for row in rows]
    arrays = [pa.array([row[field.name] for row in whole], type=field.type) for field in schema]
    table = pa.Table.from_arrays(arrays, schema=schema)
    return table.replace_schema_metadata({"goodput.sweep": spec.folder, "goodput.v": str(SCHEMA_VERSION)})


def flag_columns(configs: Sequence[Config], reserved: Sequence[str]) -> dict[str, str]:
    """Swept flag → its column's name: the flag's own, with ``flag_`` before it where that is taken."""
    flags = sorted({flag for config in configs for flag in config.swept})
    return {flag: f"flag_{flag}" if flag in reserved else flag for flag in flags}


def as_number(text: str) -> int | float | None:
    """A flag's value as a number; None where it is text (``fp8``, ``1_0``, ``007``, ``nan``)."""
    if re.fullmatch(r"-?(0|[1-9]\d*)", text):
        return int(text)
    return float(text) if re.fullmatch(r"-?(0|[1-9]\d*)\.\d+", text) else None


def flag_type(configs: Sequence[Config], flag: str) -> pa.DataType:
    """Integer or number where all values are, else text."""
    numbers = [as_number(config.flags[flag]) for config in configs if flag in config.flags]
    if any(number is None or abs(number) >= 2**63 for number in numbers):  # a seed has 64 bits without a sign
        return TEXT
    return FLOAT if any(isinstance(number, float) for number in numbers) else INT


def flag_value(config: Config, flag: str, kind: pa.DataType) -> int | float | str | None:
    """Effective value of a swept flag as its column holds it; None where the config leaves it to the server."""
    value = config.flags.get(flag)
    return value if value is None or kind == TEXT else as_number(value)


def flag_cells(configs: Sequence[Config], reserved: Sequence[str]) -> tuple[dict[str, pa.DataType], dict[str, Row]]:
    """Columns of the swept flags, and their values by config id."""
    names = flag_columns(configs, reserved)
    kinds = {flag: flag_type(configs, flag) for flag in names}
    rows = {config.id: {names[flag]: flag_value(config, flag, kinds[flag]) for flag in names} for config in configs}
    return {names[flag]: kinds[flag] for flag in names}, rows


def parquet_bytes(table: pa.Table) -> bytes:
    """The same table gives the same bytes."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue())


def csv_bytes(table: pa.Table) -> bytes:
    """With a header; null is an empty field, an empty text a pair of quotes."""
    sink = io.BytesIO()
    pc.write_csv(table, sink, pc.WriteOptions(quoting_style="needed"))
    return sink.getvalue()
