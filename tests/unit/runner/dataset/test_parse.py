from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from goodput.analysis.schema.base import Endpoint
from goodput.runner.contract import DatasetTarget
from goodput.runner.dataset.jsonl import parse_jsonl
from goodput.runner.dataset.load import load_dataset
from goodput.runner.dataset.rows import DatasetError, Row, Trace
from goodput.runner.dataset.sharegpt import parse_sharegpt
from goodput.runner.dataset.trace import parse_trace

HUMAN = {"from": "human", "value": "What is KV cache?"}
GPT = {"from": "gpt", "value": "It keeps keys and values."}
TRACE = b"""TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:17:03.9799600,4808,10
2023-11-16 18:17:04.0319601,3180,8

2023-11-16 18:17:04.0319601,7,0
2023-11-16 18:17:05,1,1
"""


def sharegpt(*conversations: object) -> bytes:
    return json.dumps([{"id": "x", "conversations": turns} for turns in conversations]).encode()


def test_the_first_human_turn_is_the_prompt_and_its_answer_the_output() -> None:
    system = {"from": "system", "value": "Be short."}
    more = [{"from": "human", "value": "And?"}, {"from": "gpt", "value": "No."}]
    parsed = parse_sharegpt(sharegpt([HUMAN, GPT, *more], [system, HUMAN, GPT], [GPT, HUMAN, GPT]))
    assert parsed.rows == (Row(GPT["value"], text=HUMAN["value"]),) * 3
    assert parsed.rows[0].chat == [{"role": "user", "content": HUMAN["value"]}]


def test_conversations_without_question_and_answer_are_counted() -> None:
    blank = {"from": "human", "value": " "}
    parsed = parse_sharegpt(sharegpt([], [HUMAN], [GPT], [blank, GPT], [HUMAN, HUMAN, GPT], [HUMAN, GPT]))
    assert (len(parsed.rows), parsed.unusable) == (1, 5)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[{]", "the file: is no JSON"),
        (b"{}", "the file: is no list of conversations"),
        (b'[{"conversations": []}, {"items": []}]', "entry 2: has no list of conversations"),
        (sharegpt([HUMAN, {"from": "gpt"}]), "entry 1, turn 2: has no from and value"),
    ],
)
def test_what_is_no_sharegpt_is_refused_with_its_place(data: bytes, message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        parse_sharegpt(data)


def test_json_lines_take_text_ids_and_messages() -> None:
    lines = [{"prompt": "é\u2028x", "output_tokens": 5, "id": 1}, {"prompt_token_ids": [1, 2], "max_tokens": 3}]
    data = "\n\n".join(json.dumps(line, ensure_ascii=False) for line in lines).encode()
    assert parse_jsonl(data, "completions").rows == (Row(5, text="é\u2028x"), Row(3, ids=(1, 2)))
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    (row,) = parse_jsonl(json.dumps({"messages": messages, "max_tokens": 3}).encode(), "chat").rows
    assert row.chat == messages


@pytest.mark.parametrize(
    ("line", "endpoint", "message"),
    [
        ('{"prompt": ', "chat", "is no JSON"),
        ("[1]", "chat", "is no JSON object"),
        ('{"output_tokens": 1}', "completions", "has 0 of prompt, prompt_token_ids, messages"),
        ('{"prompt": "a", "messages": [], "output_tokens": 1}', "chat", "has 2 of"),
        ('{"prompt": "a"}', "completions", "has 0 of output_tokens and max_tokens"),
        ('{"prompt": "a", "output_tokens": 0}', "completions", "has output_tokens 0"),
        ('{"prompt": "a", "output_tokens": true}', "completions", "has output_tokens True"),
        ('{"prompt": "a", "max_tokens": 1.5}', "completions", r"has max_tokens 1\.5"),
        ('{"prompt": "", "output_tokens": 1}', "completions", "has a prompt that is no text"),
        ('{"prompt_token_ids": [1, -1], "output_tokens": 1}', "completions", "no token ids"),
        ('{"prompt_token_ids": [1], "output_tokens": 1}', "chat", "which a chat cannot take; use endpoint completions"),
        ('{"messages": [{}], "output_tokens": 1}', "completions", "which completions cannot take; use endpoint chat"),
        ('{"messages": [{"role": "user"}], "output_tokens": 1}', "chat", "without just role and content"),
        ('{"messages": [{"role": "user", "content": []}], "output_tokens": 1}', "chat", "is no text"),
    ],
)
def test_a_bad_line_is_refused_with_its_number(line: str, endpoint: Endpoint, message: str) -> None:
    good = json.dumps({"prompt": "a", "output_tokens": 1})
    with pytest.raises(DatasetError, match=f"^line 3: .*{message}"):
        parse_jsonl(f"{good}\n\n{line}\n{good}".encode(), endpoint)


def test_a_trace_has_times_to_a_hundred_nanoseconds() -> None:
    trace = parse_trace(TRACE)
    assert trace.times_ns.tolist() == [0, 52_000_100, 1_020_040_000]
    assert (trace.prompt_tokens, trace.output_tokens) == ((4808, 3180, 1), (10, 8, 1))
    assert trace.unusable == 1
    later = TRACE.replace(b".9799600", b".9799600+00:00")
    assert parse_trace(b"\xef\xbb\xbf" + later).times_ns.tolist() == trace.times_ns.tolist()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"ContextTokens", b"Context", "line 1: has no column ContextTokens"),
        (b"3180,8", b"3180", "line 3: has 2 columns, not 3"),
        (b"3180,8", b"3180,-8", "line 3: has GeneratedTokens '-8'"),
        (b"3180,8", b"3e3,8", "line 3: has ContextTokens '3e3'"),
        (b"2023-11-16 18:17:05", b"16.11.2023", "line 6: has TIMESTAMP"),
        (b"2023-11-16 18:17:05", b"2023-11-16 18:17:01", "line 6: is earlier"),
        (b"2023-11-16 18:17:05", b"2023-13-16 18:17:05", "the file: has a TIMESTAMP that is no time"),
    ],
)
def test_a_bad_trace_is_refused_with_its_line(old: bytes, new: bytes, message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        parse_trace(TRACE.replace(old, new))


def test_a_file_is_read_with_its_hash(tmp_path: Path) -> None:
    (tmp_path / "a trace.csv").write_bytes(TRACE)
    target = DatasetTarget(kind="trace", uri=f"file://{tmp_path}/a trace.csv")
    dataset = load_dataset(target, "completions")
    assert isinstance(dataset.content, Trace)
    assert (dataset.facts.rows, dataset.facts.unusable_rows) == (3, 1)
    assert dataset.facts.sha256 == hashlib.sha256(TRACE).hexdigest()
    missing = target.model_copy(update={"uri": f"file://{tmp_path}/none.csv"})
    with pytest.raises(DatasetError, match=r"none\.csv: does not exist"):
        load_dataset(missing, "completions")
    (tmp_path / "empty.jsonl").write_bytes(b"\n")
    with pytest.raises(DatasetError, match="has no usable row"):
        load_dataset(DatasetTarget(kind="jsonl", uri=f"file://{tmp_path}/empty.jsonl"), "completions")
