import json
from typing import Any

import pytest

from goodput.engines.api.bodies import ChatBody, CompletionBody, parse
from goodput.engines.api.protocol import (
    Generation,
    Sampling,
    check_chat,
    check_completion,
    check_model,
)
from goodput.engines.errors import RequestError
from goodput.engines.simulated.tokens import ToyTokenizer

TOKENIZER = ToyTokenizer(2000)
MAX_LEN = 100


def completion(**body: Any) -> Generation:
    content = json.dumps({"prompt": [300, 301], "max_tokens": 5, **body}).encode()
    return check_completion(parse(CompletionBody, content), TOKENIZER, MAX_LEN)


def chat(**body: Any) -> Generation:
    content = json.dumps({"messages": [{"role": "user", "content": "hi"}], **body}).encode()
    return check_chat(parse(ChatBody, content), TOKENIZER, MAX_LEN)


def test_a_prompt_is_ids_or_text_alone_or_in_a_list_of_one() -> None:
    assert completion(prompt=[300, 301]).prompt == [300, 301]
    assert completion(prompt=[[300, 301]]).prompt == [300, 301]
    assert completion(prompt="hi").prompt == TOKENIZER.encode("hi", add_special_tokens=True)
    assert completion(prompt="hi", add_special_tokens=False).prompt == TOKENIZER.encode("hi")
    assert completion(prompt=["hi"]).prompt == completion(prompt="hi").prompt


def test_unset_limits_are_vllms() -> None:
    assert completion(max_tokens=None).max_tokens == 16
    rendered = TOKENIZER.encode_chat([("user", "hi")])
    assert chat().max_tokens == MAX_LEN - len(rendered)


def test_a_chat_takes_either_limit() -> None:
    assert chat(max_tokens=7).max_tokens == 7
    assert chat(max_completion_tokens=8, max_tokens=7).max_tokens == 8


def test_a_chat_joins_text_parts() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert chat(messages=[{"role": "user", "content": parts}]).prompt == TOKENIZER.encode_chat([("user", "a\nb")])


def test_an_output_that_does_not_fit_is_cut_as_vllm_0_32_cuts_it() -> None:
    assert completion(prompt=[300] * 98, max_tokens=50).max_tokens == 2


def test_usage_is_sent_only_where_asked_for() -> None:
    plain = completion(stream=True)
    assert (plain.include_usage, plain.continuous_usage) == (False, False)
    asked = completion(stream=True, stream_options={"include_usage": True, "continuous_usage_stats": True})
    assert (asked.include_usage, asked.continuous_usage) == (True, True)
    without = completion(stream=True, stream_options={"continuous_usage_stats": True})
    assert not without.continuous_usage


def test_sampling_parameters_are_read_and_the_rest_is_passed_on() -> None:
    asked = completion(temperature=0, top_p=0.5, top_k=7, min_p=0.1, seed=3, repetition_penalty=1.2, logit_bias=None)
    assert asked.sampling == Sampling(0, top_p=0.5, top_k=7, min_p=0.1, repetition_penalty=1.2, seed=3)
    assert asked.others == {"logit_bias": None}
    assert completion().sampling == Sampling()
    assert completion(return_token_ids=True).return_ids


@pytest.mark.parametrize(
    ("body", "message", "param"),
    [
        ({"prompt": [300] * 101}, "maximum context length is 100 tokens.*contains 101 input tokens", "input_tokens"),
        ({"prompt": [300] * 100}, r"\(length 100\) plus the number of requested output tokens", None),
        ({"max_tokens": 101}, "max_tokens=101 cannot be greater than max_model_len=100", "max_tokens"),
        ({"max_tokens": 0}, "must be at least 1", "max_tokens"),
        ({"prompt": [300, 2000]}, "Token id 2000 is out of vocabulary", None),
        ({"prompt": [300, -1]}, "Token id -1 is out of vocabulary", None),
        ({"prompt": ""}, "must be provided and non-empty", "prompt"),
        ({"prompt": None}, "must be provided and non-empty", "prompt"),
        ({"prompt": []}, "cannot be empty", None),
        ({"prompt": ["a", "b"]}, "one prompt per request", "prompt"),
        ({"n": 2}, "n=1", "n"),
        ({"min_tokens": 6}, "min_tokens", "min_tokens"),
        ({"temperature": -1}, "temperature must be non-negative, got -1", "temperature"),
        ({"top_p": 0}, "top_p must be in", "top_p"),
        ({"top_k": -2}, "top_k must be 0", "top_k"),
        ({"min_p": 2}, "min_p must be in", "min_p"),
        ({"repetition_penalty": 0}, "repetition_penalty must be greater than zero", "repetition_penalty"),
        ({"stream_options": {"include_usage": True}}, "only be defined when `stream=True`", "stream_options"),
        ({"prompt": {"a": 1}}, "validation error", "body.prompt.str"),
        ({"max_tokens": "many"}, "validation error", "body.max_tokens"),
    ],
)
def test_what_vllm_refuses_is_refused_with_400(body: dict[str, Any], message: str, param: str | None) -> None:
    with pytest.raises(RequestError, match=message) as refusal:
        completion(**body)
    assert refusal.value.status == 400
    assert refusal.value.param == param


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'"text"'])
def test_a_body_that_is_no_json_object_is_a_bad_request(content: bytes) -> None:
    with pytest.raises(RequestError, match="1 validation error") as refusal:
        parse(CompletionBody, content)
    assert (refusal.value.status, refusal.value.kind) == (400, "Bad Request")


@pytest.mark.parametrize("messages", [[], None])
def test_messages_must_be_there(messages: list[Any] | None) -> None:
    with pytest.raises(RequestError):
        chat(messages=messages)


def test_a_model_that_is_not_served_is_not_found() -> None:
    check_model("toy", "toy")
    check_model(None, "toy")
    with pytest.raises(RequestError, match="The model `other` does not exist") as refusal:
        check_model("other", "toy")
    assert (refusal.value.status, refusal.value.kind, refusal.value.param) == (404, "NotFoundError", "model")
