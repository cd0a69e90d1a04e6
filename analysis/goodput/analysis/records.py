"""The columns of ``requests.parquet``: one row per planned arrival of a cell.

Times are seconds from the cell's start on the monotonic clock; null where the event never happened.
"""

from __future__ import annotations

import pyarrow as pa

REQUESTS: pa.Schema = pa.schema(
    [
        pa.field("request", pa.int64(), nullable=False),
        pa.field("planned_s", pa.float64()),  # when the schedule wanted it sent (closed loop: when it was sent)
        pa.field("sent_s", pa.float64()),
        pa.field("first_s", pa.float64()),  # first token
        pa.field("last_s", pa.float64()),  # last token
        pa.field("end_s", pa.float64()),  # response ended or was closed
        pa.field("prompt_tokens", pa.int64()),
        pa.field("output_tokens", pa.int64()),
        pa.field("token_source", pa.string()),
        pa.field("outcome", pa.string(), nullable=False),  # schema.RequestOutcome
        pa.field("reason", pa.string()),
        pa.field("in_window", pa.bool_(), nullable=False),  # planned arrival lies in the window
        pa.field("itl_max_s", pa.float64()),  # largest gap between tokens
        pa.field("itl_sum_s", pa.float64()),
        pa.field("itl_count", pa.int64()),
        pa.field("stamp_source", pa.string()),
        pa.field("coalesced_reads", pa.int64()),
        pa.field("answer_s", pa.float64()),  # first token behind the reasoning
    ]
)
LATER = ("answer_s",)
"""Columns that records of earlier versions lack: nothing is known of them there."""


def completed(table: pa.Table) -> pa.Table:
    """The table with nulls in the columns that its version did not have yet."""
    for name in LATER:
        if name not in table.column_names:
            table = table.append_column(REQUESTS.field(name), pa.nulls(len(table), REQUESTS.field(name).type))
    return table


def missing_columns(table: pa.Table) -> list[str]:
    """Names of columns that ``table`` lacks, in the order of `REQUESTS`."""
    return [name for name in REQUESTS.names if name not in table.column_names]
