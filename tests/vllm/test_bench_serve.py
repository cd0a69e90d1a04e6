"""`vllm bench serve` and our client take turns on one real server: the same counts, and the times side by side."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import yaml
from tests.metric_shapes import shapes
from tests.vllm.run import GOODPUT, shown
from tests.vllm.servers import serving

from goodput.runner.snapshot import Snapshot, parse

if TYPE_CHECKING:
    from tests.vllm.conftest import Vllm

PAIRS, REQUESTS, PROMPT_TOKENS, OUTPUT_TOKENS, SERVED = 3, 48, 64, 32, "smollm2"
GOLDEN = Path(__file__).parents[1] / "data" / "vllm_0.32" / "metrics_loaded.txt"
FLAGS = "--dtype bfloat16 --enforce-eager --max-model-len 2048 --max-num-batched-tokens 2048 --max-num-seqs 16"
pytestmark = [pytest.mark.vllm, pytest.mark.timeout(1500)]
Result = dict[str, Any]


@pytest.fixture(scope="module")
def server(vllm: Vllm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of one server that both clients load."""
    command = [str(vllm.programs / "vllm"), "serve", str(vllm.model), "--served-model-name", SERVED, *FLAGS.split()]
    environment = {**vllm.environment(), "VLLM_CPU_KVCACHE_SPACE": "1"}
    with serving(command, environment, tmp_path_factory.mktemp("server") / "log") as url:
        yield url


def ours(url: str, vllm: Vllm, folder: Path) -> Result:
    """A burst of one external sweep; the cell in the format of the other client."""
    spec = {
        "model": {"name": str(vllm.model), "servedName": SERVED},
        "engines": [{"name": "vllm", "kind": "external", "external": {"url": url}}],
        "workload": {
            "promptTokens": [PROMPT_TOKENS],
            "outputTokens": [OUTPUT_TOKENS],
            "arrival": "burst",
            "window": {"requests": REQUESTS},
            "warmup": {"max": "0s"},
        },
        "slo": {"ttft": "60s"},
        "plan": {"blocks": {"min": 1}, "sentinel": "off"},
        "results": {"uri": "file://./results"},
    }
    body = {"apiVersion": "goodput.dev/v1alpha1", "kind": "BenchmarkSweep", "metadata": {"name": "ours"}, "spec": spec}
    (folder / "sweep.yaml").write_text(yaml.safe_dump(body))
    shown([*GOODPUT, "run", "sweep.yaml", "--plain"], folder, vllm.environment())
    (cell,) = folder.glob("results/**/vllm_bench.json")
    result: Result = json.loads(cell.read_text())
    return result


def theirs(url: str, vllm: Vllm, folder: Path) -> Result:
    """The same burst by ``vllm bench serve``, without its extra request that asks whether the server is ready."""
    options = {
        "backend": "openai",
        "endpoint": "/v1/completions",
        "base-url": url,
        "model": SERVED,
        "tokenizer": str(vllm.model),
        "dataset-name": "random",
        "random-input-len": str(PROMPT_TOKENS),
        "random-output-len": str(OUTPUT_TOKENS),
        "num-prompts": str(REQUESTS),
        "ready-check-timeout-sec": "0",
        "temperature": "0",
        "result-dir": str(folder),
        "result-filename": "theirs.json",
    }
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    command = [str(vllm.programs / "vllm"), "bench", "serve", *words, "--ignore-eos", "--save-result", "--disable-tqdm"]
    shown(command, folder, vllm.environment())
    result: Result = json.loads((folder / "theirs.json").read_text())
    return result


def test_counts_are_equal_and_times_are_side_by_side(server: str, vllm: Vllm, tmp_path: Path) -> None:
    clients = {"goodput": ours, "vllm bench serve": theirs}
    results: dict[str, list[Result]] = {name: [] for name in clients}
    for pair in range(PAIRS):
        for name, client in clients.items():
            folder = tmp_path / f"{pair}-{name.split()[0]}"
            folder.mkdir()
            before = counted(server)
            result = client(server, vllm, folder)
            results[name].append(result)
            rise = [after - earlier for after, earlier in zip(counted(server), before, strict=True)]
            extra = 1 if name == "goodput" else 0  # a request of one token for one, to see that the model is served
            asked = [REQUESTS, REQUESTS * PROMPT_TOKENS, REQUESTS * OUTPUT_TOKENS]
            said = [result[key] for key in ("completed", "total_input_tokens", "total_output_tokens")]
            assert said == asked, name
            assert rise == [count + extra for count in asked], name
    print(side_by_side(results))


def test_its_metrics_are_those_of_the_golden_file(server: str, vllm: Vllm) -> None:
    complete = {"model": SERVED, "prompt": "Hello", "max_tokens": 2}
    assert httpx.post(f"{server}/v1/completions", json=complete, timeout=60).status_code == httpx.codes.OK
    assert shapes(httpx.get(f"{server}/metrics").text) == shapes(GOLDEN.read_text())


def counted(url: str) -> list[float]:
    """What the server has counted so far: requests, prompt tokens, generated tokens."""
    page: Snapshot = parse(httpx.get(f"{url}/metrics").text, 0.0)
    assert page.finished is not None
    assert page.prompt_tokens is not None
    assert page.generation_tokens is not None
    return [sum(page.finished.values()), page.prompt_tokens, page.generation_tokens]


def side_by_side(results: dict[str, list[Result]]) -> str:
    """All runs, then the medians over the pairs and how far they are apart."""
    keys = {"requests/s": "request_throughput", "tokens/s": "output_throughput"}
    keys |= {"TTFT ms": "median_ttft_ms", "TPOT ms": "median_tpot_ms"}
    rows = [
        (f"pair {pair + 1}", name, *(result[pair][key] for key in keys.values()))
        for pair in range(PAIRS)
        for name, result in results.items()
    ]
    middle = {
        name: [statistics.median(result[key] for result in runs) for key in keys.values()]
        for name, runs in results.items()
    }
    rows += [("median", name, *values) for name, values in middle.items()]
    first, second = middle.values()
    lines = [f"\n{'':8}{'':18}" + "".join(f"{name:>12}" for name in keys)]
    lines += [f"{pair:8}{name:18}" + "".join(f"{value:12.2f}" for value in values) for pair, name, *values in rows]
    apart = "".join(f"{one / other - 1:>+12.1%}" for one, other in zip(first, second, strict=True))
    return "\n".join([*lines, f"{'apart':26}{apart}"])
