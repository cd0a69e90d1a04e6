"""Live latencies: another process follows the spool, and comes to the same end as the records."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from bench.golden.script import Case, Script, Stream

from goodput.analysis.metrics import request_metrics
from goodput.analysis.schema.cell import LogHistogram
from goodput.analysis.schema.planned import Load
from goodput.runner.contract import PlannedLoad
from goodput.runner.load.latencies import Followed
from goodput.runner.load.records import GapHistogram
from goodput.runner.load.run import CellRecords, LoadRun, RandomIds, Target

if TYPE_CHECKING:
    from tests.integration.runner.load.conftest import StartGolden

OPEN = Load(prompt_tokens=4, output_tokens=4, arrival="constant", request_rate=60, window_seconds=1)
FOR_A_TIME = Load(prompt_tokens=4, output_tokens=4, arrival="closed", concurrency=4, window_seconds=1)
BURST = Load(prompt_tokens=4, output_tokens=4, arrival="burst", window_requests=30)
BY_COUNT = Load(prompt_tokens=4, output_tokens=4, arrival="closed", concurrency=6, window_requests=60)


SCRIPT = Script(default=Case("always", Stream(ttft=0.004, gap=0.004)))


def start(port: int, load: Load, folder: Path, **options: int | bool) -> LoadRun:
    plan = PlannedLoad(load=load, seed=11, lead_in_seconds=0.3, drain_seconds=20)
    target = Target.of(f"http://127.0.0.1:{port}", "golden", "completions")
    run = LoadRun(plan, target, RandomIds(range(1000), 1), folder, **options)  # type: ignore[arg-type]
    run.start()
    return run


def histogram(seconds: np.ndarray) -> LogHistogram:
    added = GapHistogram()
    known = np.round(seconds[~np.isnan(seconds)] * 1e9)
    added.add(known, np.ones(len(known), dtype=np.int64))
    return added.document()


def same(followed: LogHistogram, expected: LogHistogram) -> None:
    """Equal, but for a value on an edge, which the seconds of the records may put beside it."""
    off = Counter(followed.counts)
    off.subtract(expected.counts)
    assert sum(off.values()) == 0
    assert sum(abs(count) for count in off.values()) <= 2


@pytest.mark.parametrize(
    ("load", "processes"), [(OPEN, 1), (OPEN, 2), (FOR_A_TIME, 2), (BY_COUNT, 1), (BY_COUNT, 3), (BURST, 2)]
)
def test_the_follower_ends_where_the_records_do(
    golden: StartGolden, tmp_path: Path, load: Load, processes: int
) -> None:
    run = start(golden(SCRIPT).port, load, tmp_path / "cell", processes=processes, follow=True)
    try:
        assert run.wait(60)
        run.follow_up()
        followed = run.followed()
        cell = run.collect()
    finally:
        run.close()
    assert followed is not None
    agrees(followed, cell)


def agrees(followed: Followed, cell: CellRecords) -> None:
    requests = request_metrics(cell.requests)
    done = requests.completed
    assert followed.itl == cell.itl
    assert followed.outcomes == {"completed": cell.counts.completed}
    assert followed.ended == sum(1 for row in cell.requests.to_pylist() if row["end_s"] is not None)
    assert sum(followed.ttft.counts.values()) == cell.counts.completed > 20
    same(followed.ttft, histogram(requests.ttft_s[done]))
    same(followed.tpot, histogram(requests.tpot_s[done]))
    same(followed.e2e, histogram(requests.e2e_s[done]))


def test_it_shows_the_window_while_it_runs(golden: StartGolden, tmp_path: Path) -> None:
    endless = FOR_A_TIME.model_copy(update={"window_seconds": 60.0})
    run = start(golden(SCRIPT).port, endless, tmp_path / "cell", follow=True)
    seen, tick = None, threading.Event()
    try:
        for _ in range(300):
            seen = run.followed()
            if seen is not None and seen.outcomes.get("completed", 0) > 20:
                break
            tick.wait(0.1)
        counts = run.live()
    finally:
        run.stop()
        run.wait(20)
        run.close()
    assert seen is not None
    assert seen.outcomes["completed"] > 20
    assert sum(seen.ttft.counts.values()) == seen.outcomes["completed"]
    assert counts.ended >= seen.ended
    assert counts.failed == 0


def test_where_nothing_follows_nothing_is_shown(golden: StartGolden, tmp_path: Path) -> None:
    run = start(golden(SCRIPT).port, OPEN, tmp_path / "cell", follow=False)
    try:
        assert run.wait(60)
        assert run.followed() is None
        assert not (tmp_path / "cell" / "followed.json").exists()
    finally:
        run.close()
