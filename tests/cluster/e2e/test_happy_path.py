"""The main job: apply, wait, tables in the store, the leader in the status, nothing left behind."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cluster.e2e.conftest import Bench


def test_a_sweep_ends_with_tables_and_a_leader(bench: Bench) -> None:
    bench.apply(bench.sweep(budgets=[1024, 4096], rates=[4, 8], blocks=1))
    status = bench.succeeded(180)
    assert status["progress"] == "4/4"
    assert status["counts"]["measured"] == 4
    assert status["best"]["verdict"] == "undecided", "one block cannot decide"
    assert status["evidence"] == "synthetic"
    assert {c["type"] for c in status["conditions"] if c["status"] == "True"} >= {
        "Accepted",
        "PreflightPassed",
        "Complete",
    }
    assert bench.seen[-1] == "Succeeded"
    assert "Running" in bench.seen

    assert len(bench.results()) == 4
    cells = bench.table("cells")
    assert [cell["state"] for cell in cells] == ["measured"] * 4
    goodput = bench.table("goodput")
    assert len(goodput) == 4
    assert {row["evidence"] for row in goodput} == {"synthetic"}
    assert all(row["attempted"] > 0 and row["good"] == row["attempted"] for row in goodput)
    assert all(row["preemptions"] == 0 for row in goodput)
    keys = bench.stored()
    assert any(key.endswith("/report.html") for key in keys)
    assert any(key.endswith("/best.yaml") for key in keys)
    assert sum(key.endswith("/server.log.zst") for key in keys) == 2

    secret = bench.info.s3.secret_key.encode()
    for key in keys:
        assert secret not in bench.read(key), key
    assert secret.decode() not in json.dumps(bench.get())
    bench.gone()
    assert "Succeeded" in bench.reasons()


def test_deleting_the_sweep_leaves_no_child(bench: Bench) -> None:
    bench.apply(bench.sweep(window="60s"))
    bench.step("measuring")
    bench.custom.delete_namespaced_custom_object("goodput.dev", "v1alpha1", bench.namespace, "benchmarksweeps", "t")
    bench.gone(150)
