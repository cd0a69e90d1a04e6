"""Logs are scrubbed, small, and keep their beginning and end."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
import zstandard

from goodput.operator.cluster import logs

Make = Callable[..., dict[str, Any]]


def unpacked(data: bytes) -> str:
    return zstandard.ZstdDecompressor().decompress(data).decode()


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "wJalrXUtnFEMI/K7MDENG"),
        ('{"api_key": "sk-12345678"}', "sk-12345678"),
        ("api_key=['sk-12345678']", "sk-12345678"),
        ("Authorization: Bearer abcdef0123456789", "abcdef0123456789"),
        ("using key AKIAIOSFODNN7EXAMPLE now", "AKIAIOSFODNN7EXAMPLE"),
        ("token hf_abcdefghijklmnopqrstuv", "hf_abcdefghijklmnopqrstuv"),
        ("pulling from https://user:hunter22@host/x", "hunter22"),
        ("GET /b?X-Amz-Credential=AK%2F2026&X-Amz-Signature=0badc0de", "0badc0de"),
    ],
)
def test_credentials_are_hidden(text: str, secret: str) -> None:
    assert secret in text
    assert secret not in logs.scrub(text)


@pytest.mark.parametrize(
    "text",
    [
        "Avg prompt throughput: 11.8 tokens/s, max_num_batched_tokens=8192",
        "tokenizer='a/b', prompt_tokens: 64, secret sauce",
        "http://10.0.0.7:8000/v1/completions",
    ],
)
def test_ordinary_lines_stay(text: str) -> None:
    assert logs.scrub(text) == text


def test_a_log_that_fits_is_whole() -> None:
    assert unpacked(logs.packed("a\nb\n", 1000)) == "a\nb\n"


def test_a_log_that_does_not_fit_loses_its_middle() -> None:
    rng = random.Random(1)
    lines = [f"line {number} {rng.getrandbits(256):x}" for number in range(20_000)]
    data = logs.packed("\n".join(lines), 50_000)
    assert len(data) <= 50_000
    text = unpacked(data)
    assert text.startswith(lines[0])
    assert text.endswith(lines[-1])
    assert "characters left out" in text


def test_all_files_together_fit_a_config_map() -> None:
    assert sum(logs.LIMITS.values()) <= 900 << 10


def test_a_pods_secret_variables_are_hidden(make_pod: Make) -> None:
    pod = make_pod()
    env = [{"name": "API_TOKEN", "value": "s3cr3t"}, {"name": "HOME", "value": "/cache"}]
    pod["spec"]["containers"][0]["env"] = env
    text = logs.description([pod]).decode()
    assert "s3cr3t" not in text
    assert "/cache" in text


def test_of_too_many_events_the_latest_are_kept() -> None:
    found = [
        {
            "reason": f"r{number}",
            "message": "m" * 500,
            "lastTimestamp": f"2026-11-30T06:{number // 60:02d}:{number % 60:02d}Z",
        }
        for number in range(1000)
    ]
    data = logs.events(reversed(found))
    rows = json.loads(data)
    assert len(data) <= logs.LIMITS[logs.EVENTS]
    assert rows[-1]["reason"] == "r999"
    assert rows == sorted(rows, key=lambda row: row["lastTimestamp"])
