import json
from typing import Any

import pytest

from goodput.engines.api.sse import EventWriter, Head, whole_answer

HEAD = Head(identifier="cmpl-1", created=1796018688, model='a "quoted" model', fingerprint="vllm-x-1234abcd")


def writer(*, chat: bool = False, include_usage: bool = False, continuous: bool = False) -> EventWriter:
    return EventWriter(chat=chat, head=HEAD, prompt_tokens=3, include_usage=include_usage, continuous_usage=continuous)


def documents(data: bytes) -> list[Any]:
    events = data.decode().split("\n\n")
    assert events.pop() == ""
    bodies = [event.removeprefix("data: ") for event in events]
    return [body if body == "[DONE]" else json.loads(body) for body in bodies]


def test_a_completion_chunk_has_vllms_fields_in_vllms_order() -> None:
    (chunk,) = documents(writer().tokens(b'" ab"', 1, None))
    assert list(chunk) == ["id", "object", "created", "model", "choices"]
    assert chunk["object"] == "text_completion"
    assert chunk["model"] == HEAD.model
    (choice,) = chunk["choices"]
    assert list(choice.items()) == [
        ("index", 0),
        ("text", " ab"),
        ("logprobs", None),
        ("finish_reason", None),
        ("stop_reason", None),
        ("prompt_token_ids", None),
        ("token_ids", None),
    ]


def test_a_chat_starts_with_the_role_and_goes_on_with_content() -> None:
    stream = writer(chat=True, include_usage=True, continuous=True)
    (role,) = documents(stream.opening())
    assert role["object"] == "chat.completion.chunk"
    assert role["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert role["usage"] == {"prompt_tokens": 3, "total_tokens": 3, "completion_tokens": 0}
    (chunk,) = documents(stream.tokens(b'"x"', 1, None))
    assert chunk["choices"] == [
        {"index": 0, "delta": {"content": "x"}, "logprobs": None, "finish_reason": None, "token_ids": None}
    ]
    assert writer().opening() == b""


@pytest.mark.parametrize("chat", [False, True])
def test_continuous_usage_counts_up(chat: bool) -> None:
    stream = writer(chat=chat, include_usage=True, continuous=True)
    for total in (1, 2, 5):
        (chunk,) = documents(stream.tokens(b'""', total, None))
        assert chunk["usage"] == {"prompt_tokens": 3, "total_tokens": 3 + total, "completion_tokens": total}


@pytest.mark.parametrize("chat", [False, True])
def test_the_last_token_brings_the_finish_reason(chat: bool) -> None:
    (chunk,) = documents(writer(chat=chat).tokens(b'"x"', 4, "length"))
    assert chunk["choices"][0]["finish_reason"] == "length"
    assert chunk["choices"][0]["stop_reason"] is None
    assert chunk["system_fingerprint"] == HEAD.fingerprint


@pytest.mark.parametrize("chat", [False, True])
def test_a_stream_with_usage_ends_with_a_chunk_without_choices(chat: bool) -> None:
    usage, done = documents(writer(chat=chat, include_usage=True).closing(4))
    assert usage["choices"] == []
    assert usage["usage"] == {"prompt_tokens": 3, "total_tokens": 7, "completion_tokens": 4}
    assert usage["system_fingerprint"] == HEAD.fingerprint
    assert done == "[DONE]"
    (chunk,) = documents(writer(chat=chat, include_usage=True).tokens(b'"x"', 4, "length"))
    assert "system_fingerprint" not in chunk


def test_a_stream_without_usage_ends_at_once() -> None:
    assert writer().closing(4) == b"data: [DONE]\n\n"


@pytest.mark.parametrize(("chat", "kind"), [(False, "text_completion"), (True, "chat.completion")])
def test_a_whole_answer_has_text_and_usage(chat: bool, kind: str) -> None:
    answer = whole_answer(HEAD, chat=chat, text="abc", finish_reason="stop", counts={"completion_tokens": 2})
    assert answer["object"] == kind
    (choice,) = answer["choices"]
    assert choice["finish_reason"] == "stop"
    assert (choice["message"]["content"] if chat else choice["text"]) == "abc"
    assert answer["usage"]["completion_tokens"] == 2


@pytest.mark.parametrize("chat", [False, True])
def test_token_ids_come_with_every_chunk_where_asked_for_and_the_prompts_once(chat: bool) -> None:
    stream = EventWriter(
        chat=chat, head=HEAD, prompt_tokens=3, include_usage=False, continuous_usage=False, prompt_ids=[7, 8, 9]
    )
    data = stream.opening() + stream.tokens(b'"a"', 1, None, [11]) + stream.tokens(b'"b"', 3, "stop", [12, 2])
    chunks = documents(data)
    choices = [chunk["choices"][0] for chunk in chunks]
    assert [choice["token_ids"] for choice in choices[-2:]] == [[11], [12, 2]]
    given = [(chunk if chat else choice).get("prompt_token_ids") for chunk, choice in zip(chunks, choices, strict=True)]
    assert [ids for ids in given if ids] == [[7, 8, 9]]
    assert given[0] == [7, 8, 9]


@pytest.mark.parametrize("chat", [False, True])
def test_a_whole_answer_carries_token_ids_where_asked_for(chat: bool) -> None:
    answer = whole_answer(HEAD, chat=chat, text="ab", finish_reason="stop", counts={}, ids=([7, 8], [11, 2]))
    choice = answer["choices"][0]
    assert choice["token_ids"] == [11, 2]
    assert (answer if chat else choice)["prompt_token_ids"] == [7, 8]
