from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from goodput.operator.spec.errors import SpecError
from goodput.operator.spec.parse import parse_spec
from goodput.operator.spec.resolve import resolve
from goodput.operator.sweep import TrialId
from goodput.operator.trialplan import trial_plan
from goodput.runner.contract import ServerFacts

Build = Callable[..., dict[str, Any]]


def document(sweep: Build, metrics: dict[str, Any] | None) -> dict[str, Any]:
    built = sweep()
    engines = [
        {**engine, **({} if metrics is None else {"gpuMetrics": metrics})} for engine in built["spec"]["engines"]
    ]
    built["spec"]["engines"] = engines
    return built


@pytest.mark.parametrize(
    ("metrics", "node", "expected"),
    [
        ({"url": "http://{node}:9400/metrics"}, "gpu-7", "http://gpu-7:9400/metrics"),
        ({"url": "http://{node}:9400/metrics"}, None, None),
        ({"url": "http://dcgm:9400/metrics"}, None, "http://dcgm:9400/metrics"),
        (None, "gpu-7", None),
    ],
)
def test_the_runner_gets_the_page_of_the_servers_node(
    sweep: Build, metrics: dict[str, Any] | None, node: str | None, expected: str | None
) -> None:
    resolved = resolve(document(sweep, metrics))
    plan = trial_plan(
        resolved, TrialId("0", resolved.configs[0].id, 1), ServerFacts(url="http://x", order=1, node=node)
    )
    assert plan.server.gpu_metrics_url == expected


@pytest.mark.parametrize("url", ["dcgm:9400", "", "ftp://dcgm/metrics"])
def test_an_address_that_is_none_is_refused(sweep: Build, url: str) -> None:
    with pytest.raises(SpecError):
        parse_spec(document(sweep, {"url": url}))
