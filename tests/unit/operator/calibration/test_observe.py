from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from goodput.analysis.records import REQUESTS
from goodput.analysis.schema.cell import CellDocument
from goodput.analysis.schema.server import ServerColumns
from goodput.engines.simulated.virtual import Arrival
from goodput.operator.calibration.command import CalibrationError, held_out
from goodput.operator.calibration.observe import UnusableCellError, observe

RESOLVED = {"max_num_batched_tokens": "512", "max_num_seqs": "64", "max_model_len": "8192", "num_gpu_blocks": "1000"}


def document(resolved: dict[str, str] | None = None, **changes: Any) -> CellDocument:
    stored = CellDocument.model_validate_json(Path("tests/data/schema_1/cell.json").read_bytes())
    provenance = stored.provenance.model_copy(update={"resolved": RESOLVED if resolved is None else resolved})
    return stored.model_copy(update={"provenance": provenance, **changes})


def row(sent: float | None, **changes: Any) -> dict[str, Any]:
    done = sent is not None
    values = {
        "planned_s": sent,
        "sent_s": sent,
        "first_s": sent + 0.2 if sent is not None else None,
        "last_s": sent + 1.2 if sent is not None else None,
        "prompt_tokens": 100 if done else None,
        "output_tokens": 11 if done else None,
        "outcome": "completed" if done else "not_sent",
        "in_window": True,
    }
    return dict.fromkeys(REQUESTS.names) | values | changes


def table(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist([values | {"request": index} for index, values in enumerate(rows)], schema=REQUESTS)


def test_all_requests_that_were_sent_are_replayed_and_those_of_the_window_judged() -> None:
    cell = observe(document(), table(row(2.0), row(0.5, in_window=False), row(None)))
    assert list(cell.arrivals) == [Arrival(500_000_000, 100, 11), Arrival(2_000_000_000, 100, 11)]
    assert list(cell.judged) == [False, True]
    assert (cell.means.ttft, cell.means.tpot, cell.means.e2e) == pytest.approx((0.2, 0.1, 1.2))
    scheduler = cell.config.scheduler
    assert (scheduler.max_num_batched_tokens, scheduler.max_num_seqs, scheduler.max_model_len) == (512, 64, 8192)
    assert cell.config.cache.num_gpu_blocks == 1000


def test_a_request_that_was_cut_off_loads_the_engine_with_what_it_asked_for() -> None:
    cell = observe(document(), table(row(1.0), row(2.0, outcome="incomplete", output_tokens=3)))
    assert [arrival.output_tokens for arrival in cell.arrivals] == [11, 64]
    assert list(cell.judged) == [True, False]


def test_blocks_that_the_server_counted_come_before_those_it_resolved() -> None:
    server = ServerColumns(complete=True, kv_blocks=700, block_size=32)
    cache = observe(document(server=server), table(row(1.0))).config.cache
    assert (cache.num_gpu_blocks, cache.block_size) == (700, 32)


@pytest.mark.parametrize(
    ("cell", "rows", "why"),
    [
        (document(resolved={}), [row(1.0)], "did not say its max_num_seqs"),
        (document(resolved=RESOLVED | {"num_gpu_blocks": "3"}), [row(1.0)], "111 tokens does not fit"),
        (document(resolved=RESOLVED | {"max_num_seqs": "1000"}), [row(1.0)], "none that the simulator knows"),
        (document(), [row(None)], "no request of the window completed"),
        (document(server=ServerColumns(complete=True, prefix_queries=100, prefix_hits=50)), [row(1.0)], "50%"),
    ],
)
def test_a_cell_that_cannot_be_replayed_says_why(cell: CellDocument, rows: list[dict[str, Any]], why: str) -> None:
    with pytest.raises(UnusableCellError, match=why):
        observe(cell, table(*rows))


def test_cells_held_out_are_the_same_on_every_run_and_two_are_left_to_fit() -> None:
    points = [(config, load) for config in "ab" for load in "cdef"]
    assert held_out(points, 0.25) == held_out(list(reversed(points)), 0.25)
    assert [len(held_out(points, share)) for share in (0.0, 0.25, 0.5, 1.0)] == [1, 2, 4, 6]


def test_too_few_cells_are_refused_with_the_reasons_of_those_that_were_of_no_use() -> None:
    with pytest.raises(CalibrationError, match=r"1 can be used\n  x: because"):
        held_out([("a", "b")], 0.25, [("x", "because")])
