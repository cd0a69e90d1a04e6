"""The operator killed with SIGKILL at any moment: it continues, nothing is measured twice, no orphan is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.cluster.e2e.conftest import Bench, Faults


@pytest.mark.parametrize("step", ["starting", "warming", "measuring", "uploading"])
def test_operator_killed_while(step: str, bench: Bench, faults: Faults) -> None:
    faults.rested_operator(bench)
    bench.apply(bench.sweep(rates=[4, 6], profile="fixed-rate", warmup="4s", args={"start_seconds": "3"}))
    reached: Callable[[Any], bool] = {
        "starting": lambda s: any(c.get("step") == "starting" for c in s.get("current", [])),
        "warming": lambda s: any(c.get("step") == "warming" for c in s.get("current", [])),
        "measuring": lambda s: any(c.get("step") == "measuring" for c in s.get("current", [])),
        "uploading": lambda _: bool(bench.commits()),
    }[step]
    bench.wait(reached, 90)
    assert faults.kill("goodput-operator") >= 1
    status = bench.succeeded()
    assert len(bench.results()) == 2
    assert len(bench.commits()) == 2, "nothing was measured twice"
    assert status["counts"]["measured"] == 2
    bench.gone()
