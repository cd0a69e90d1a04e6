"""A server that stops for five seconds: the schedule goes on, and what users would have waited is in the records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.golden.script import Case, Script, Stall, Stream

from goodput.analysis.schema.planned import Load

if TYPE_CHECKING:
    from tests.integration.runner.load.conftest import RunCell, StartGolden

RATE = 20.0
STALL = Stall(at=1.0, seconds=5.0)
MARGIN_SECONDS = 0.5  # generous: lateness of the client on a busy machine


def test_a_stalled_server_slows_the_answers_and_never_the_schedule(golden: StartGolden, run_cell: RunCell) -> None:
    server = golden(Script(default=Case("quick", Stream()), stall=STALL))
    load = Load(prompt_tokens=4, output_tokens=4, arrival="constant", request_rate=RATE, window_seconds=7.5)
    cell = run_cell(server.port, load)
    start = cell.monotonic_opened - cell.window.opened
    stopped, went_on = (stamp / 1e9 - start for stamp in server.summary()["stalled_ns"])
    assert went_on - stopped >= STALL.seconds
    rows = [row for row in cell.requests.to_pylist() if row["in_window"]]
    assert cell.counts.completed == cell.counts.attempted == len(rows) == RATE * 7.5

    inside = [row for row in rows if stopped + MARGIN_SECONDS < row["planned_s"] < went_on - MARGIN_SECONDS]
    assert len(inside) >= RATE * (STALL.seconds - 3 * MARGIN_SECONDS)
    for row in inside:
        assert row["sent_s"] < went_on  # while the server answered nobody
        assert row["first_s"] >= went_on
    truth = [row for row in server.truth() if stopped < row["arrived_ns"] / 1e9 - start < went_on - MARGIN_SECONDS]
    assert len(truth) >= len(inside)  # it was not there to take them in, and knows when they came all the same
    assert {row["arrived_by"] for row in truth} == {"kernel"}
    scheduled = sorted(row["first_s"] - row["planned_s"] for row in rows)
    assert scheduled[-1] > STALL.seconds - MARGIN_SECONDS
    assert sum(1 for wait in scheduled if wait > 1) >= RATE * (STALL.seconds - 1) - RATE * MARGIN_SECONDS
    lateness = [row["sent_s"] - row["planned_s"] for row in rows]
    assert max(lateness) < MARGIN_SECONDS
    assert cell.client.sent == cell.client.planned
