from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from goodput.analysis.schema.planned import Config, Load, Slo
from goodput.analysis.schema.sweep import SpecDocument
from goodput.runner.contract import CanaryAnswer, CanaryInput, ResultsTarget

if TYPE_CHECKING:
    from tests.integration.runner.store.conftest import S3, Mode

Canary = Callable[..., tuple[int, CanaryAnswer]]


def _spec(**changes: object) -> SpecDocument:
    config = Config(engine="toy", kind="simulated", flags={"max_num_seqs": "64"})
    load = Load(prompt_tokens=32, output_tokens=4, arrival="poisson", request_rate=1, window_seconds=1)
    fields: dict[str, object] = {
        "namespace": "default",
        "name": "small",
        "uid": "1a2b3c4d",
        "folder": "default.small.1a2b3c4d",
        "evidence": "synthetic",
        "spec": {},
        "model": "toy/model",
        "configs": (config,),
        "loads": (load,),
        "blocks": ("0",),
        "reference": config.id,
        "slo": Slo(ttft=1),
    }
    return SpecDocument.model_validate(fields | changes)


@pytest.fixture
def canary(tmp_path: Path, s3: S3) -> Canary:
    def run(spec: SpecDocument | None = None, endpoint: str | None = None) -> tuple[int, CanaryAnswer]:
        target = ResultsTarget(uri="s3://bench/sweeps", endpoint=endpoint or s3.endpoint)
        (tmp_path / "input.json").write_bytes(CanaryInput(results=target, spec=spec or _spec()).to_json())
        command = [sys.executable, "-m", "goodput.runner", "canary", "--input", str(tmp_path / "input.json")]
        done = subprocess.run(
            [*command, "--message", str(tmp_path / "message")],
            env=s3.environment,
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
        )
        for secret in ("very-secret-test-key", "AKIATESTONLY"):
            assert secret not in done.stderr + done.stdout + (tmp_path / "message").read_text()
        return done.returncode, CanaryAnswer.model_validate_json((tmp_path / "message").read_text())

    return run


def test_spec_json_is_written_once(canary: Canary, s3: S3) -> None:
    assert canary() == (0, CanaryAnswer(ok=True))
    key = "sweeps/sweep=default.small.1a2b3c4d/spec.json"
    assert json.loads(s3.objects[key])["name"] == "small"
    before = s3.objects[key]
    assert canary() == (0, CanaryAnswer(ok=True))
    assert s3.objects[key] == before
    code, answer = canary(_spec(indifference=0.1))
    assert (code, answer.reason) == (1, "SpecConflict")
    assert s3.objects[key] == before


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("denied", "UploadDenied"),
        ("no-bucket", "NoSuchBucket"),
        ("unavailable", "StoreUnreachable"),
        ("overwrites", "ConditionalCreateIgnored"),
        ("not-implemented", "ConditionalCreateIgnored"),
    ],
)
def test_each_refusal_has_its_reason(canary: Canary, s3: S3, mode: Mode, reason: str) -> None:
    s3.mode = mode
    code, answer = canary()
    assert (code, answer.ok, answer.reason) == (1, False, reason)
    assert "s3://bench/sweeps" in answer.message
    assert not [key for key in s3.objects if key.endswith("spec.json")]


def test_nobody_listens(canary: Canary) -> None:
    code, answer = canary(endpoint="http://127.0.0.1:1")
    assert (code, answer.reason) == (1, "StoreUnreachable")
