"""One model behind vLLM and the Transformers baseline, both in float32 on CPU: the same tokens, another queue."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from bench.peers.baseline import PROGRAM
from tests.vllm.servers import serving

from goodput.runner.snapshot import Snapshot, parse

if TYPE_CHECKING:
    from tests.vllm.conftest import Vllm

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(1500)]
PROMPTS = (Path(__file__).parent / "prompts.txt").read_text().splitlines()
TOKENS = 16
SHARE = 0.9
COMMON = ("--served-model-name", "smollm2", "--dtype", "float32", "--max-model-len", "2048")
CHATS = (
    [{"role": "user", "content": "Why is the sky blue?"}],
    [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Good morning!  Wie geht's? 🙂"}],
    [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello! How can I help?"},
        {"role": "user", "content": "Name a fruit."},
    ],
)


class Engine:
    """A running server."""

    def __init__(self, url: str) -> None:
        self.client = httpx.Client(base_url=url, timeout=600)

    def post(self, path: str, **body: Any) -> Any:
        answer = self.client.post(path, json=body)
        assert answer.status_code == httpx.codes.OK, answer.text
        return answer.json()

    def ids(self, **body: Any) -> list[int]:
        found: list[int] = self.post("/tokenize", **body)["tokens"]
        return found

    def complete(self, prompt: str | list[int], **asked: Any) -> Mapping[str, Any]:
        """A greedy answer with its token ids, in one piece."""
        body = {"prompt": prompt, "max_tokens": TOKENS, "temperature": 0, "return_token_ids": True, **asked}
        answer = self.post("/v1/completions", **body)
        return {**answer["choices"][0], "usage": answer["usage"]}

    def metrics(self) -> Snapshot:
        return parse(self.client.get("/metrics").text, 0.0)


Engines = tuple[Engine, Engine]


@pytest.fixture(scope="module")
def engines(vllm: Vllm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    """vLLM, and the baseline."""
    logs, environment = tmp_path_factory.mktemp("logs"), {**vllm.environment(), "VLLM_CPU_KVCACHE_SPACE": "1"}
    served = [str(vllm.programs / "vllm"), "serve", str(vllm.model), *COMMON, "--enforce-eager", "--max-num-seqs", "16"]
    baseline = [str(vllm.baseline / PROGRAM), str(vllm.model), *COMMON, "--device", "cpu"]
    with ExitStack() as stack:
        urls = [
            stack.enter_context(serving(command, environment, logs / name))
            for name, command in (("vllm", served), ("baseline", baseline))
        ]
        first, second = map(Engine, urls)
        for engine in (first, second):
            stack.callback(engine.client.close)
        yield first, second


def test_prompts_are_the_same_ids_on_both(engines: Engines) -> None:
    vllm, baseline = engines
    texts = [*PROMPTS, "", "ünï 🙂 <|im_start|>user\nx<|im_end|>", "  two  spaces\n\n\ttab "]
    for text in filter(None, texts):
        for special in (True, False):
            asked = {"prompt": text, "add_special_tokens": special}
            assert baseline.ids(**asked) == vllm.ids(**asked), text
    for messages in CHATS:
        assert baseline.ids(messages=messages) == vllm.ids(messages=messages)
        lengths = [
            engine.post("/v1/chat/completions", messages=messages, max_tokens=1)["usage"]["prompt_tokens"]
            for engine in engines
        ]
        assert lengths == [len(vllm.ids(messages=messages))] * 2


def test_greedy_answers_are_the_same_tokens(engines: Engines) -> None:
    """Equal up to numerics: where they differ, the two best tokens must be nearly equal in vLLM's eyes."""
    vllm, baseline = engines
    same = 0
    for prompt in PROMPTS:
        ours, theirs = (engine.complete(prompt, ignore_eos=True) for engine in (baseline, vllm))
        assert ours["prompt_token_ids"] == theirs["prompt_token_ids"]
        assert ours["usage"]["prompt_tokens"] == theirs["usage"]["prompt_tokens"]
        if ours["token_ids"] == theirs["token_ids"]:
            assert ours["text"] == theirs["text"]
            same += 1
        else:
            print(f"\ndiffer: {prompt!r}: {parting(vllm, ours, theirs)}")
    share = same / len(PROMPTS)
    print(f"\nidentical first {TOKENS} tokens, float32, temperature 0: {same} of {len(PROMPTS)} ({share:.0%})")
    assert share >= SHARE


def parting(vllm: Engine, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> str:
    """Where two answers part, and how far apart the likeliest tokens are there."""
    pairs = zip(ours["token_ids"], theirs["token_ids"], strict=True)
    place = next(index for index, (one, other) in enumerate(pairs) if one != other)
    prefix = ours["prompt_token_ids"] + ours["token_ids"][:place]
    likeliest = vllm.complete(prefix, max_tokens=1, logprobs=2)["logprobs"]["top_logprobs"][0]
    first, second = sorted(likeliest.values(), reverse=True)[:2]
    return f"at token {place}, where vLLM's two likeliest are {first - second:.4f} apart: {likeliest}"


def test_an_ignored_end_of_text_changes_nothing_before_it(engines: Engines) -> None:
    """No logit is touched: the answer that goes on begins with the one that ended, end of text included."""
    text = "<|im_start|>user\nName a fruit.<|im_end|>\n<|im_start|>assistant\n"
    answers = []
    for engine in engines:
        ended = engine.complete(text, max_tokens=200)
        assert ended["finish_reason"] == "stop"
        length = len(ended["token_ids"])
        assert ended["usage"]["completion_tokens"] == length < 200
        ignored = engine.complete(text, max_tokens=length + 10, ignore_eos=True)
        assert ignored["finish_reason"] == "length"
        assert len(ignored["token_ids"]) == length + 10
        assert ignored["token_ids"][:length] == ended["token_ids"]
        answers.append(ended["token_ids"])
    assert answers[0] == answers[1]


def test_sampling_repeats_with_its_seed_and_not_without(engines: Engines) -> None:
    _, baseline = engines
    asked = {"temperature": 1.0, "top_p": 0.95, "max_tokens": 24, "ignore_eos": True}
    seeded = [baseline.complete(PROMPTS[2], seed=11, **asked)["token_ids"] for _ in range(2)]
    free = [baseline.complete(PROMPTS[2], **asked)["token_ids"] for _ in range(3)]
    assert seeded[0] == seeded[1]
    assert len({tuple(ids) for ids in free}) > 1


def test_a_client_that_leaves_stops_the_generation(engines: Engines) -> None:
    _, baseline = engines
    before = baseline.metrics()
    body = {"prompt": "Once", "max_tokens": 2000, "ignore_eos": True, "stream": True}
    with baseline.client.stream("POST", "/v1/completions", json=body) as response:
        next(response.iter_lines())
    deadline = time.monotonic() + 60
    while (now := baseline.metrics()).running:
        assert time.monotonic() < deadline
    assert now.finished is not None
    assert before.finished is not None
    assert now.finished["abort"] == before.finished["abort"] + 1
    assert (now.generation_tokens or 0) - (before.generation_tokens or 0) < 2000


def test_throughput_of_the_baseline_does_not_rise_with_concurrency(engines: Engines) -> None:
    """Exactly: its requests never overlap, however many wait. The rates are printed, vLLM's beside them."""
    _, baseline = engines
    print(f"\n{'concurrency':>12}{'vLLM tokens/s':>16}{'baseline tokens/s':>20}")
    for concurrency in (1, 2, 4):
        before = baseline.metrics().histograms
        rates = [rate(engine, concurrency) for engine in engines]
        after = baseline.metrics().histograms
        print(f"{concurrency:>12}{rates[0][0]:>16.1f}{rates[1][0]:>20.1f}")
        served = sum((after[name].total or 0) - (before[name].total or 0) for name in ("prefill", "decode"))
        assert served <= rates[1][1], "the sum of times in the model is at most the time that passed"


def rate(engine: Engine, concurrency: int, requests: int = 8, tokens: int = 32) -> tuple[float, float]:
    """Output tokens per second and seconds of a closed loop."""
    begun = time.monotonic()
    with ThreadPoolExecutor(concurrency) as pool:
        answers = list(
            pool.map(lambda text: engine.complete(text, max_tokens=tokens, ignore_eos=True), PROMPTS[:requests])
        )
    seconds = time.monotonic() - begun
    assert [len(answer["token_ids"]) for answer in answers] == [tokens] * requests
    return requests * tokens / seconds, seconds


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--device", "cuda"], "error: argument --device: cuda cannot be used"),
        (["--device", "abacus"], "error: argument --device: abacus cannot be used"),
        (["--max-model-len", "8193"], "error: User-specified max_model_len (8193) is greater than the derived"),
    ],
)
def test_flags_that_do_not_go_with_machine_or_model_are_named(flags: list[str], message: str, vllm: Vllm) -> None:
    words = [str(vllm.baseline / PROGRAM), str(vllm.model), *flags]
    done = subprocess.run(words, env=vllm.environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert message in done.stderr


def test_it_says_what_it_is(engines: Engines) -> None:
    _, baseline = engines
    info = json.loads(baseline.client.get("/server_info", params={"config_format": "json"}).text)
    config, environment = info["vllm_config"], info["system_env"]
    assert config["model_config"]["dtype"] == "float32"
    assert config["device_config"]["device"] == "cpu"
    assert environment["torch_version"].startswith("2.13.0")
    assert baseline.client.get("/version").json() == {"version": "5.19.0", "engine": "transformers"}
