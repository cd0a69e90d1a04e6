from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from goodput.analysis.schema.cell import CellDocument, LogHistogram
from goodput.runner.contract import TrialPlan
from goodput.runner.live import LiveMetrics
from goodput.runner.load.latencies import Followed
from goodput.runner.load.spool import SENT
from goodput.runner.running import Progress, Running
from goodput.runner.summary import summarize


def value(metrics: LiveMetrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def running(folder: Path, progress: Progress, followed: Followed | None = None) -> Running:
    return Running(lambda: progress, lambda: followed, folder, processes=1)


def test_counts_only_go_up_over_a_cell(plan: TrialPlan, cell: CellDocument, requests: pa.Table, tmp_path: Path) -> None:
    metrics = LiveMetrics(plan)
    metrics.begin(plan.loads[0], running(tmp_path, Progress(sent=4, ended=3, failed=1)))
    assert value(metrics, "goodput_runner_requests_in_flight") == 1
    assert value(metrics, "goodput_runner_requests_sent_total") == 4
    assert value(metrics, "goodput_runner_responses_total", status="ok") == 2
    assert value(metrics, "goodput_runner_responses_total", status="failed") == 1
    metrics.freeze()
    assert value(metrics, "goodput_runner_responses_total", status="ok") == 2
    assert value(metrics, "goodput_runner_requests_in_flight") == 0
    assert value(metrics, "goodput_runner_requests_sent_total") == 4
    outcomes = {"completed": 3, "failed": 1, "not_sent": 1}
    metrics.end(cell, outcomes, summarize(requests, cell.load, cell.slo, 2.0))
    assert value(metrics, "goodput_runner_requests_sent_total") == 4
    assert value(metrics, "goodput_runner_requests_ended_total", outcome="completed") == 3
    assert value(metrics, "goodput_runner_requests_ended_total", outcome="incomplete") == 0
    assert value(metrics, "goodput_runner_cells_total", outcome="valid") == 1


def test_a_valid_cell_leaves_its_figures(plan: TrialPlan, cell: CellDocument, requests: pa.Table) -> None:
    metrics = LiveMetrics(plan)
    metrics.end(cell, {}, summarize(requests, cell.load, cell.slo, 2.0))
    labels = {"config": cell.key.config, "load": cell.key.load, "evidence": "synthetic"}
    assert value(metrics, "goodput_requests_per_second", **labels) == 0.5
    assert value(metrics, "goodput_slo_attainment_ratio", **labels) == 0.25
    assert value(metrics, "goodput_offered_requests_per_second", **labels) == 2.0
    assert value(metrics, "goodput_ttft_seconds", **labels, quantile="0.5") == pytest.approx(0.549)
    assert value(metrics, "goodput_tpot_seconds", **labels, quantile="0.99") == pytest.approx(0.1)


def test_a_void_cell_is_counted_and_leaves_no_figures(plan: TrialPlan, cell: CellDocument, requests: pa.Table) -> None:
    metrics = LiveMetrics(plan)
    void = cell.model_copy(update={"outcome": "void", "reason": "NotIdle"})
    metrics.end(void, {}, summarize(requests, cell.load, cell.slo, 2.0))
    assert value(metrics, "goodput_runner_cells_total", outcome="void") == 1
    labels = {"config": cell.key.config, "load": cell.key.load, "evidence": "synthetic"}
    assert value(metrics, "goodput_requests_per_second", **labels) is None


def test_the_running_cell_is_named(plan: TrialPlan, cell: CellDocument, tmp_path: Path) -> None:
    metrics = LiveMetrics(plan)
    labels = {
        "sweep": plan.sweep,
        "config": plan.config.id,
        "config_label": plan.config.label,
        "load": plan.loads[0].load.id,
        "load_label": plan.loads[0].load.label,
        "block": "0",
        "attempt": "2",
        "evidence": "synthetic",
    }
    metrics.begin(plan.loads[0], running(tmp_path, Progress(0, 0)))
    assert value(metrics, "goodput_runner_cell_info", **labels) == 1
    metrics.end(cell, {}, None)
    assert value(metrics, "goodput_runner_cell_info", **labels) is None


def test_lateness_is_read_from_the_send_log_while_it_grows(plan: TrialPlan, tmp_path: Path) -> None:
    metrics = LiveMetrics(plan)
    metrics.begin(plan.loads[0], running(tmp_path, Progress(0, 0)))
    assert value(metrics, "goodput_runner_send_lag_seconds_count") == 0, "there is no log yet"
    log = tmp_path / "sent-0.bin"
    log.write_bytes(SENT.pack(0, 1_000, 51_000) + SENT.pack(1, 0, 10_000_000) + SENT.pack(2, 5, -1) + b"torn")
    assert value(metrics, "goodput_runner_send_lag_seconds_bucket", le="0.0001") == 1
    assert value(metrics, "goodput_runner_send_lag_seconds_bucket", le="0.01") == 2
    assert value(metrics, "goodput_runner_send_lag_seconds_sum") == pytest.approx(0.01005)
    with log.open("r+b") as file:
        file.seek(3 * SENT.size)
        file.write(SENT.pack(3, 0, 2_000_000_000))
    metrics.freeze()
    log.unlink()
    metrics.begin(plan.loads[1], running(tmp_path / "next", Progress(0, 0)))
    assert value(metrics, "goodput_runner_send_lag_seconds_bucket", le="1.0") == 2
    assert value(metrics, "goodput_runner_send_lag_seconds_count") == 3, (
        "nothing was sent twice, and never sent is not late"
    )


def test_followed_latencies_are_shown_and_stay_after_their_cell(plan: TrialPlan, tmp_path: Path) -> None:
    metrics = LiveMetrics(plan)
    labels = {"config": plan.config.id, "load": plan.loads[0].load.id, "evidence": "synthetic"}
    seen = Followed(ended=5, ttft=LogHistogram(zero=1, counts={-1: 2, 0: 3}))  # [0.990, 1) s and [1, 1.01) s
    metrics.begin(plan.loads[0], running(tmp_path, Progress(5, 5), seen))
    assert value(metrics, "goodput_live_ttft_seconds_bucket", **labels, le="1") == 3
    assert value(metrics, "goodput_live_ttft_seconds_bucket", **labels, le="+Inf") == 6
    metrics.freeze()
    metrics.begin(plan.loads[1], running(tmp_path, Progress(0, 0)))
    assert value(metrics, "goodput_live_ttft_seconds_bucket", **labels, le="+Inf") == 6
    other = labels | {"load": plan.loads[1].load.id}
    assert value(metrics, "goodput_live_ttft_seconds_bucket", **other, le="+Inf") is None, "nothing follows that one"
