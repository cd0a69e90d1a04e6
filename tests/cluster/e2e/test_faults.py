"""Whatever breaks while a sweep runs: the cell is void or kept, the reason is named, the sweep goes on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from kubernetes import client

if TYPE_CHECKING:
    from tests.cluster.e2e.conftest import Bench, Faults


def test_a_killed_runner_container_recovers_its_spool(bench: Bench, faults: Faults) -> None:
    bench.apply(bench.sweep(rates=[4, 6], window="8s"))
    bench.wait(lambda _: len(bench.commits()) == 1, 90)
    bench.step("measuring")
    assert faults.kill("goodput-runner") >= 1
    bench.succeeded(180)
    assert len(bench.results()) == 2
    reasons = [commit["reason"] for commit in bench.commits() if commit["outcome"] == "void"]
    assert reasons == ["RunnerFailed"], "the cell that ran is void, the one before it is kept"
    bench.gone()


def test_a_deleted_runner_pod_voids_its_cell_and_gives_a_new_attempt(bench: Bench) -> None:
    bench.apply(bench.sweep(window="10s"))
    bench.step("measuring")
    pod = bench.pods("runner")[0]
    bench.core.delete_namespaced_pod(pod.metadata.name, bench.namespace)
    bench.succeeded(240)
    assert len(bench.results()) == 1
    attempts = [(commit["outcome"], commit["reason"]) for commit in bench.commits()]
    assert sorted(attempts, key=str) == [("valid", None), ("void", "RunnerStopped")]
    bench.gone()


def test_a_deleted_server_pod_voids_its_cell_and_gives_a_new_attempt(bench: Bench) -> None:
    bench.apply(bench.sweep(window="10s"))
    bench.step("measuring")
    pod = bench.pods("server")[0]
    bench.core.delete_namespaced_pod(pod.metadata.name, bench.namespace, grace_period_seconds=0)
    bench.succeeded(240)
    voids = [commit["reason"] for commit in bench.commits() if commit["outcome"] == "void"]
    assert set(voids) <= {"ServerGone", "ServerRestarted", "RunnerStopped"}, "whoever saw it first: runner or driver"
    assert len(bench.results()) == 1
    key = next(key for key in bench.stored() if key.endswith("/states.json"))
    reasons = [trial["reason"] for trial in json.loads(bench.read(key))["trials"]]
    assert {"ServerGone", "ServerRestarted"} & set(reasons), "the driver names the cause"
    bench.gone()


def test_a_store_that_refuses_and_recovers_loses_nothing(bench: Bench, faults: Faults) -> None:
    with faults.gate(bench) as gate:
        bench.apply(bench.sweep(rates=[4, 6], window="4s", profile="fixed-rate", warmup="4s"))
        bench.step("warming")
        gate.shut = True
        bench.wait(lambda s: _condition(s, "ResultsCommitted") == ("False", "UploadDenied"), 120)
        assert gate.refused > 0
        assert bench.results() == []
        gate.shut = False
        bench.succeeded(240)
    assert len(bench.results()) == 2
    assert len(bench.commits()) == 2, "kept in the spool, not measured again"
    bench.gone()


def test_a_store_that_refuses_from_the_start_is_found_before_a_server_starts(bench: Bench, faults: Faults) -> None:
    with faults.gate(bench) as gate:
        gate.shut = True
        bench.apply(bench.sweep())
        status = bench.finished(180)
    assert status["phase"] == "Failed"
    assert _condition(status, "PreflightPassed") == ("False", "UploadDenied")
    assert bench.pods("server") == []


def test_suspend_and_resume(bench: Bench) -> None:
    bench.apply(bench.sweep(rates=[4, 6], window="8s"))
    bench.wait(lambda _: len(bench.commits()) == 1, 90)
    bench.step("measuring")
    bench.patch({"suspend": True})
    bench.wait(lambda s: s.get("phase") == "Suspended" and not s.get("current"), 120)
    assert bench.pods("server") == []
    bench.patch({"suspend": False})
    bench.succeeded(180)
    assert len(bench.results()) == 2
    bench.gone()


def test_cancel_keeps_what_was_measured(bench: Bench) -> None:
    bench.apply(bench.sweep(rates=[4, 6], window="8s"))
    bench.wait(lambda _: len(bench.commits()) == 1, 90)
    bench.step("measuring")
    bench.patch({"cancel": True})
    status = bench.finished(180)
    assert status["phase"] == "Cancelled"
    assert _condition(status, "Failed") == ("True", "Cancelled")
    assert len(bench.results()) == 1
    states = sorted(cell["state"] for cell in bench.table("cells"))
    assert states in (["measured", "not_run"], ["measured", "void"])
    bench.gone()


def test_a_wrong_flag_fails_one_config_and_not_the_sweep(bench: Bench) -> None:
    # a share of the KV cache above 1: only the server can tell that it makes no sense
    body = bench.sweep()
    body["spec"]["configs"] = {
        "list": [{"max_num_batched_tokens": 2048}, {"max_num_batched_tokens": 2048, "watermark": "2.0"}]
    }
    bench.apply(body)
    status = bench.finished(180)
    assert status["phase"] == "PartiallyFailed"
    assert status["counts"]["measured"] == 1
    assert status["counts"]["failed"] == 1
    assert status["lastError"]["reason"] == "InvalidServerArgs"
    states = {cell["state"]: cell["reason"] for cell in bench.table("cells")}
    assert states == {"measured": None, "failed": "InvalidServerArgs"}
    assert any(key.endswith("/server.log.zst") for key in bench.stored())
    bench.gone()


def test_a_wrong_image_ends_in_a_named_reason(bench: Bench) -> None:
    body = bench.sweep()
    body["spec"]["engines"][0]["image"] = "localhost/no-such-image:1"
    bench.apply(body)
    status = bench.finished(240)
    assert status["phase"] == "Failed"
    assert status["lastError"]["reason"] == "ImagePullFailed"
    bench.gone()


def test_a_spec_that_cannot_work_is_refused_with_field_and_fix(bench: Bench) -> None:
    body = bench.sweep()
    body["spec"]["configs"]["grid"]["max_num_batched_tokens"] = [32]  # below max_num_seqs 64
    bench.apply(body)
    status = bench.wait(lambda s: bool(s.get("conditions")), 30)
    accepted = next(c for c in status["conditions"] if c["type"] == "Accepted")
    assert accepted["status"] == "False"
    assert "max_num_batched_tokens" in accepted["message"]
    assert "max_num_seqs" in accepted["message"]
    assert client.AppsV1Api(bench.api).list_namespaced_deployment(bench.namespace).items == []


def _condition(status: dict[str, object], kind: str) -> tuple[str, str] | None:
    conditions = status.get("conditions", [])
    assert isinstance(conditions, list)
    return next(((c["status"], c["reason"]) for c in conditions if c["type"] == kind), None)
