from __future__ import annotations

import pyarrow as pa
import pytest

from goodput.analysis.schema import CellDocument
from goodput.runner.contract import TrialPlan
from goodput.runner.live import LiveMetrics, Progress
from goodput.runner.summary import summarize


def value(metrics: LiveMetrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def test_counts_only_go_up_over_a_cell(plan: TrialPlan, cell: CellDocument, requests: pa.Table) -> None:
    metrics = LiveMetrics(plan)
    metrics.begin(plan.loads[0], lambda: Progress(sent=4, ended=1))
    assert value(metrics, "goodput_runner_requests_in_flight") == 3
    assert value(metrics, "goodput_runner_requests_sent_total") == 4
    metrics.freeze()
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


def test_the_running_cell_is_named(plan: TrialPlan, cell: CellDocument) -> None:
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
    metrics.begin(plan.loads[0], lambda: Progress(0, 0))
    assert value(metrics, "goodput_runner_cell_info", **labels) == 1
    metrics.end(cell, {}, None)
    assert value(metrics, "goodput_runner_cell_info", **labels) is None
