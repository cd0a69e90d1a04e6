"""What a vLLM log says: captured logs of the CPU build, and lines as the sources of other versions write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from goodput.operator.serverlog import compile_cache, parse_log

LOGS = Path(__file__).parents[2] / "data" / "vllm_logs"
HEAD = "(EngineCore pid=22) INFO 11-30 02:06:14 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: "
CONFIG = "model='m', speculative_config=None, dtype=torch.bfloat16, max_seq_len=8192, enforce_eager=False, seed=0\n"


def captured(name: str) -> str:
    return (LOGS / f"{name}.log").read_text()


def test_a_compiled_start_as_captured() -> None:
    log = parse_log(captured("compiled_first200"))
    assert log is not None
    assert log.model_dump(exclude_none=True) == {
        "engine_version": "0.32.0",
        "weights_seconds": 0.63,
        "compile_cache": "miss",
        "init_engine_seconds": 52.53,
        "kv_cache_tokens": 46592,
        "max_concurrency": 22.75,
        "preemption_warnings": 0,
        "resolved": {
            "data_parallel_size": "1",
            "dtype": "torch.bfloat16",
            "enable_chunked_prefill": "True",
            "enable_prefix_caching": "True",
            "enforce_eager": "False",
            "kv_cache_dtype": "auto",
            "load_format": "auto",
            "max_seq_len": "2048",
            "model": "/models/smollm2",
            "pipeline_parallel_size": "1",
            "seed": "0",
            "tensor_parallel_size": "1",
        },
    }


def test_an_eager_start_compiles_nothing() -> None:
    log = parse_log(captured("eager_first200"))
    assert log is not None
    assert log.compile_cache is None
    assert (log.weights_seconds, log.init_engine_seconds, log.kv_cache_tokens) == (1.13, 3.35, 46592)


@pytest.mark.parametrize("name", ["autokv.prev", "oom.prev", "tmponly.prev"])
def test_a_start_that_failed_says_how_far_it_came(name: str) -> None:
    log = parse_log(captured(name))
    assert log is not None
    assert log.resolved["max_seq_len"] == "2048"
    assert log.kv_cache_tokens is None


@pytest.mark.parametrize("text", ["", "INFO: Application startup complete.\n", captured("drain_term")])
def test_a_log_without_a_start_says_nothing(text: str) -> None:
    assert parse_log(text) is None
    assert compile_cache(text) is None


GPU_LINES = {
    "0.32": """
[scheduler.py:307] Chunked prefill is enabled with max_num_batched_tokens=8192.
[cuda.py:506] Using FLASH_ATTN attention backend out of potential backends: ['FLASH_ATTN', 'FLASHINFER'].
[default_loader.py:501] Loading weights took 3.10 seconds
[model_runner.py:424] Model loading took 2.8943 GiB memory and 4.123456 seconds
[monitor.py:62] [backbone] torch.compile took 21.50 s in total
[gpu_worker.py:759] Available KV cache memory: 66.91 GiB
[kv_cache_utils.py:2327] GPU KV cache size: 2,505,712 tokens, Maximum concurrency for 8,192 tokens per request: 305.87x
[model_runner.py:1128] Graph capturing finished in 7 secs, took 0.51 GiB
[core.py:396] init engine (profile, create kv cache, warmup model) took 41.22 s (compilation: 21.50 s)
""",
    "0.11": """
[scheduler.py:216] Chunked prefill is enabled with max_num_batched_tokens=8192.
[cuda.py:427] Using FLASH_ATTN backend.
[default_loader.py:314] Loading weights took 3.10 seconds
[gpu_model_runner.py:3338] Model loading took 2.8943 GiB memory and 4.123456 seconds
[monitor.py:34] torch.compile takes 21.50 s in total
[gpu_worker.py:359] Available KV cache memory: 66.91 GiB
[kv_cache_utils.py:1229] GPU KV cache size: 2,505,712 tokens
[kv_cache_utils.py:1234] Maximum concurrency for 8,192 tokens per request: 305.87x
[gpu_model_runner.py:4244] Graph capturing finished in 7 secs, took 0.51 GiB
[core.py:250] init engine (profile, create kv cache, warmup model) took 41.22 seconds
""",
}


@pytest.mark.parametrize("version", GPU_LINES)
def test_lines_of_a_gpu_start(version: str) -> None:
    log = parse_log(HEAD + CONFIG + GPU_LINES[version])
    assert log is not None
    assert log.model_dump(exclude={"resolved", "compile_cache"}, exclude_none=True) == {
        "engine_version": "0.32.0",
        "weights_seconds": 3.1,
        "model_load_seconds": 4.123456,
        "model_memory_gib": 2.8943,
        "compile_seconds": 21.5,
        "graph_capture_seconds": 7.0,
        "graph_capture_gib": 0.51,
        "init_engine_seconds": 41.22,
        "kv_cache_memory_gib": 66.91,
        "kv_cache_tokens": 2505712,
        "max_concurrency": 305.87,
        "attention_backend": "FLASH_ATTN",
        "chunked_prefill_tokens": 8192,
        "preemption_warnings": 0,
    }


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("[decorators.py:319] [backbone] Directly load AOT compilation from path /cache/x/model", "hit"),
        ("[backends.py:295] Directly load the compiled graph(s) for compile range (1, 8192) from the cache", "hit"),
        ("[backends.py:398] Compiling a graph for compile range (1, 8192) takes 11.93 s", "miss"),
        ("[decorators.py:743] [backbone] saved AOT compiled function to /cache/x/model", "miss"),
        (
            "torch/_functorch/_aot_autograd/autograd_cache.py:1028] [0/0] AOTAutograd cache hit for key aj4okqwulz",
            "hit",
        ),
        ("torch/_functorch/_aot_autograd/autograd_cache.py:1055] [0/0] AOTAutograd cache miss for key aj4okq", "miss"),
        ("torch/_inductor/codecache.py:2299] [0/0] fx graph cache hit for key fuiwasr5piiljdylbumxiru", "hit"),
        ("torch/_inductor/codecache.py:2316] [0/0] fx graph cache miss for key fuiwasr5piiljdylbumxiru", "miss"),
        ("[backends.py:1102] vLLM's torch.compile cache is disabled.", "unknown"),
        ("[monitor.py:62] torch.compile took 5.10 s in total", "unknown"),
        ("", "unknown"),
    ],
)
def test_the_compile_cache_is_what_the_log_says(lines: str, said: str) -> None:
    assert compile_cache(f"{HEAD}{CONFIG}{lines}\n") == said


def test_one_graph_that_was_compiled_is_a_miss() -> None:
    load = "Directly load AOT compilation from path /cache/x\n"
    again = "Compiling model again due to a load failure from /cache/x, reason: no attribute 'finalize_loading'\n"
    assert compile_cache(HEAD + CONFIG + load + "Compiling a graph for compile range (1, 2) takes 1.00 s\n") == "miss"
    assert compile_cache(HEAD + CONFIG + again) == "miss"


def test_the_snapshot_that_was_loaded() -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    line = (
        f"HF_HUB_OFFLINE is True, replace model_id [a/b] to model_path [/models/hub/models--a--b/snapshots/{commit}]\n"
    )
    log = parse_log(line + HEAD + CONFIG)
    assert log is not None
    assert log.model_snapshot == commit


def test_blocks_and_preemptions_where_a_version_says_them() -> None:
    lines = "# GPU blocks: 27962, # CPU blocks: 4681\nSequence group 7 is preempted by PreemptionMode.RECOMPUTE mode\n"
    log = parse_log(HEAD + CONFIG + lines * 2)
    assert log is not None
    assert (log.kv_blocks, log.cpu_blocks, log.preemption_warnings) == (27962, 4681, 2)


def test_nested_values_of_the_config_line_do_not_pass_as_its_own() -> None:
    line = "model='m', observability_config=ObservabilityConfig(seed=9, dtype=x), seed=0, quantization=fp8\n"
    log = parse_log(HEAD + line)
    assert log is not None
    assert log.resolved == {"model": "m", "quantization": "fp8", "seed": "0"}


@pytest.mark.parametrize(
    "line",
    [
        "Loading weights took ... seconds",
        "Loading weights took 1.5. seconds",
        "GPU KV cache size: , tokens",
        "Maximum concurrency for , tokens per request: .x",
        f"# GPU blocks: {'9' * 5000}, # CPU blocks: 12",
        f"GPU KV cache size: {'9' * 5000} tokens",
    ],
)
def test_a_mangled_line_says_nothing(line: str) -> None:
    log = parse_log(f"{HEAD}{CONFIG}{line}\n")
    assert log is not None
    assert log.model_dump(exclude_none=True).keys() <= {
        *("engine_version", "compile_cache", "preemption_warnings", "resolved", "cpu_blocks")
    }


def test_colours_change_nothing() -> None:
    grey, reset = "\x1b[90m", "\x1b[0m"
    log = parse_log(
        f"{HEAD}{CONFIG.strip()}{reset}\nINFO {grey}11-30 02:06:14 [cuda.py:274]{reset} Using FLASH_ATTN backend.\n"
    )
    assert log is not None
    assert (log.attention_backend, log.resolved["seed"]) == ("FLASH_ATTN", "0")
