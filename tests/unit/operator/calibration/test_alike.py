"""Cells of unlike servers are not fitted together."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.operator.calibration.test_observe import document

from goodput.analysis.schema.planned import Config, Load
from goodput.analysis.schema.sweep import SpecDocument
from goodput.operator.calibration.alike import differences


def config(engine: str = "a", gpus: int = 1, **swept: str) -> Config:
    return Config(engine=engine, kind="vllm", flags=swept, swept=swept, gpus=gpus)


def found(*configs: Config, gpus: tuple[str, ...] = ("H100",), model: str = "m") -> list[str]:
    provenance = document().provenance
    documents = [
        document().model_copy(update={"provenance": provenance.model_copy(update={"gpu": gpu, "model": model})})
        for gpu in gpus
    ]
    load = Load(prompt_tokens=1, output_tokens=1, arrival="poisson", request_rate=1, window_seconds=1)
    spec: dict[str, Any] = {"namespace": "n", "name": "t", "uid": "u", "folder": "f", "evidence": "measured"}
    spec |= {"spec": {}, "model": "m", "loads": (load,), "blocks": ("0",), "reference": configs[0].id, "slo": {}}
    return list(differences(SpecDocument.model_validate({**spec, "configs": configs}), documents))


def test_a_sweep_over_the_scheduler_is_of_one_server() -> None:
    assert found(config(max_num_batched_tokens="512"), config(max_num_batched_tokens="1024", max_num_seqs="8")) == []


@pytest.mark.parametrize(
    ("configs", "gpus", "words"),
    [
        ((config("new"), config("old")), ("H100",), "2 engines (new, old)"),
        ((config(gpus=1), config(gpus=2)), ("H100",), "2 GPUs for each server (1, 2)"),
        ((config(),), ("H100", "A100"), "2 kinds of GPU (A100, H100)"),
        ((config(dtype="half"), config(dtype="float")), ("H100",), "several values of dtype"),
    ],
)
def test_what_differs_is_named(configs: tuple[Config, ...], gpus: tuple[str, ...], words: str) -> None:
    assert found(*configs, gpus=gpus) == [words]
