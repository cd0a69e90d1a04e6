"""Reasons from logs: captured ones of vLLM 0.32 on CPU, and the texts of its source."""

from __future__ import annotations

from pathlib import Path

import pytest

from goodput.operator.classify import RULES, classify_log, last_line
from goodput.operator.reasons import REASONS

LOGS = Path(__file__).parents[2] / "data" / "vllm_logs"


def captured(name: str) -> str:
    return (LOGS / f"{name}.log").read_text()


@pytest.mark.parametrize(
    ("log", "reason", "text"),
    [
        ("autokv.prev", "HostOutOfMemory", "is less than desired CPU memory utilization (0.92, 3.68 GiB)"),
        ("oom.prev", "HostOutOfMemory", "less than requested memory for kv (1.0 GiB)"),
        ("tmponly.prev", "ContainerConfigError", "160 MiB required, 64 MiB free"),
    ],
)
def test_captured_failures(log: str, reason: str, text: str) -> None:
    failure = classify_log(captured(log))
    assert failure is not None
    assert failure.reason == reason
    assert text in failure.message
    assert not failure.message.startswith("("), "the log's prefix is not part of the message"


@pytest.mark.parametrize("log", ["compiled_first200", "eager_first200", "drain_term"])
def test_a_healthy_log_is_no_failure(log: str) -> None:
    assert classify_log(captured(log)) is None


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("vllm serve: error: unrecognized arguments: --max-num-partial-prefills 2", "InvalidServerArgs"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "CudaOutOfMemory"),
        (
            (
                "ValueError: To serve at least one request with the model's max seq len (8192), (0.88 GiB KV cache is "
                "needed, which is larger than the available KV cache memory (0.12 GiB)."
            ),
            "KvCacheTooSmall",
        ),
        ("vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.", "EngineDead"),
        ("RuntimeError: Engine core initialization failed. See root cause above.", "EngineDead"),
        ("generating failed, the server ends: index out of range in self", "EngineDead"),
        ("goodput-engine-transformers: error: argument --device: cuda cannot be used: no CUDA", "InvalidServerArgs"),
        (
            "ValueError: Consider increasing max_num_batched_tokens or decreasing num_speculative_tokens",
            "InvalidServerArgs",
        ),
        ("ValueError: VllmConfig does not have enough slots to schedule a token and support", "InvalidServerArgs"),
        ("ValueError: `ray` does not support async scheduling yet.", "InvalidServerArgs"),
        ("ValueError: Unknown attention backend: 'FLASH'. Valid options are: FLASH_ATTN", "InvalidServerArgs"),
        ("ValueError: Chunked MM input disabled but max_tokens_per_mm_item (2304) is larger", "InvalidServerArgs"),
        (
            (
                "ValueError: Free memory on device cuda:0 (10.1/79.2 GiB) on startup is less than desired GPU memory "
                "utilization (0.92, 72.9 GiB). Decrease GPU memory utilization."
            ),
            "GpuMemoryBusy",
        ),
        ("OSError: [Errno 98] Address already in use", "PortInUse"),
        ("zmq.error.ZMQError: Address already in use (addr='tcp://127.0.0.1:5557')", "PortInUse"),
        (
            "cannot listen on 127.0.0.1:80: [Errno 98] error while attempting to bind: address already in use",
            "PortInUse",
        ),
        ("OSError: no/such is not a local folder and is not a valid model identifier", "ModelUnavailable"),
    ],
)
def test_texts_of_the_source(line: str, reason: str) -> None:
    failure = classify_log(f"INFO 11-30 02:02:01 [core.py:1] starting\n{line}\n")
    assert failure is not None
    assert (failure.reason, failure.message) == (reason, line)


def test_the_root_cause_wins_over_what_follows_from_it() -> None:
    log = "RuntimeError: Engine core initialization failed. See root cause above.\nCUDA out of memory\n"
    failure = classify_log(log)
    assert failure is not None
    assert failure.reason == "CudaOutOfMemory"


def test_a_port_that_another_process_took_is_tried_again_and_costs_no_retry() -> None:
    log = "OSError: [Errno 98] Address already in use\nRuntimeError: Engine core initialization failed.\n"
    failure = classify_log(log)
    assert failure is not None
    assert (failure.reason, REASONS[failure.reason].kind) == ("PortInUse", "disruption")


def test_a_pydantic_error_keeps_the_rule_that_was_broken() -> None:
    log = (
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for SchedulerConfig\n"
        "  Value error, max_num_batched_tokens (64) must be greater than or equal to max_num_seqs (128)."
        " [type=value_error]\n"
        "    For further information visit the site\n"
    )
    failure = classify_log(log)
    assert failure is not None
    assert failure.reason == "InvalidServerArgs"
    assert "max_num_batched_tokens (64) must be greater" in failure.message


def test_every_rule_gives_a_reason_of_the_table() -> None:
    assert {reason for reason, _ in RULES} <= set(REASONS)


def test_last_line_is_without_prefix() -> None:
    assert last_line("a\n(EngineCore pid=2) ERROR 11-30 02:16:04 [core.py:15] gone wrong\n\n") == "gone wrong"
