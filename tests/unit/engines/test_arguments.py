import argparse

import pytest
from pydantic import ValidationError

from goodput.engines.api.arguments import human_int
from goodput.engines.errors import KvCacheTooSmallError
from goodput.engines.simulated import arguments
from goodput.engines.simulated.config import EngineConfig, batch_defaults
from goodput.engines.simulated.profile import load_profile


def resolved(*flags: str, profile: str = "teaching") -> EngineConfig:
    return arguments.resolve(arguments.parse(["toy", *flags]), load_profile(profile))


@pytest.mark.parametrize(
    ("text", "value"), [("512", 512), ("8k", 8000), ("8K", 8192), ("1.5k", 1500), ("1M", 1 << 20), ("2g", 2 * 10**9)]
)
def test_numbers_are_read_as_vllm_reads_them(text: str, value: int) -> None:
    assert human_int(text) == value


@pytest.mark.parametrize("text", ["auto", "-1"])
def test_a_length_that_is_left_open_is_the_models(text: str) -> None:
    assert resolved(f"--max-model-len={text}").scheduler.max_model_len == load_profile("teaching").max_model_len


@pytest.mark.parametrize("text", ["", "8x", "1.5", "-3", "8 k 8"])
def test_other_numbers_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        human_int(text)


def test_flags_may_be_spelled_with_underscores() -> None:
    config = resolved("--max_num_batched_tokens=2048", "--max_num_seqs", "16")
    assert (config.scheduler.max_num_batched_tokens, config.scheduler.max_num_seqs) == (2048, 16)


def test_a_value_keeps_its_underscores() -> None:
    assert resolved("--served-model-name", "my_model").served_model_name == "my_model"


@pytest.mark.parametrize("flag", ["--speculative-config", "--max-num-partial-prefills", "--max-num-batched"])
def test_an_unknown_flag_ends_with_code_2(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        resolved(flag, "4")
    assert end.value.code == 2
    assert f"unrecognized arguments: {flag}" in capsys.readouterr().err


def test_the_model_is_an_argument_or_a_flag() -> None:
    assert arguments.parse(["--model", "toy"]).model == "toy"
    for wrong in ([], ["toy", "--model", "other"]):
        with pytest.raises(SystemExit):
            arguments.parse(wrong)


def test_defaults_are_vllms_for_the_device() -> None:
    gib = 1 << 30
    assert batch_defaults(80 * gib, "NVIDIA H100") == (8192, 1024)
    assert batch_defaults(80 * gib, "NVIDIA A100-SXM4-80GB") == (2048, 256)
    assert batch_defaults(24 * gib, "RTX 4090") == (2048, 256)
    assert batch_defaults(180 * gib, "B200") == (16384, 1024)


def test_the_sequences_follow_a_small_budget() -> None:
    scheduler = resolved("--max-num-batched-tokens", "64").scheduler
    assert (scheduler.max_num_batched_tokens, scheduler.max_num_seqs) == (64, 64)


def test_without_chunked_prefill_the_budget_holds_the_longest_prompt() -> None:
    scheduler = resolved("--no-enable-chunked-prefill", "--max-model-len", "12000").scheduler
    assert scheduler.max_num_batched_tokens == 12000


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ["--max-num-batched-tokens", "64", "--max-num-seqs", "128"],
            r"max_num_batched_tokens \(64\) must be greater than or equal to max_num_seqs \(128\)",
        ),
        (
            ["--max-num-batched-tokens", "2048", "--max-model-len", "8192", "--no-enable-chunked-prefill"],
            r"max_num_batched_tokens \(2048\) is smaller than max_model_len \(8192\)",
        ),
        (
            ["--long-prefill-token-threshold", "8000", "--max-model-len", "4096"],
            r"long_prefill_token_threshold \(8000\) cannot be greater than the max_model_len \(4096\)",
        ),
        (
            ["--max-num-active-seqs", "200", "--max-num-seqs", "100"],
            r"max_num_active_seqs \(200\) cannot be greater than max_num_seqs \(100\)",
        ),
        (["--max-num-batched-tokens", "0"], "greater than or equal to 1"),
        (["--max-num-seqs", "0"], "greater than or equal to 1"),
    ],
)
def test_vllms_config_rules_are_kept(flags: list[str], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        resolved(*flags)


def test_a_cache_that_does_not_hold_one_request_is_refused() -> None:
    with pytest.raises(KvCacheTooSmallError, match="To serve at least one request with the model's max seq len"):
        resolved("--num-gpu-blocks-override", "100", "--max-model-len", "4096")


def test_no_block_is_not_as_many_as_fit() -> None:
    with pytest.raises(KvCacheTooSmallError):
        resolved("--num-gpu-blocks-override", "0")


@pytest.mark.parametrize("size", ["0", "-1"])
def test_a_block_has_a_token(size: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        resolved(f"--block-size={size}")
    assert "--block-size: must be at least 1" in capsys.readouterr().err


def test_blocks_follow_from_memory_and_budget() -> None:
    small, large = (resolved("--max-num-batched-tokens", budget).cache for budget in ("1024", "16384"))
    assert small.num_gpu_blocks > large.num_gpu_blocks > 20000
    assert resolved("--num-gpu-blocks-override", "2000").cache.size_tokens == 32000
    assert resolved("--kv-cache-memory-bytes", "4G").cache.num_gpu_blocks == (4 << 30) // (16 * 131072)
