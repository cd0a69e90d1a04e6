from typing import Any

import pytest

from goodput.engines.api.protocol import Sampling
from goodput.engines.errors import RequestError
from goodput.engines.transformers.model import Choice
from goodput.engines.transformers.sampling import choose, refuse_unbuilt


def test_what_nobody_says_is_vllms_default() -> None:
    assert choose(Sampling(), Sampling()) == Choice(1.0, top_p=1.0, top_k=0, min_p=0.0, repetition_penalty=1.0)


def test_the_request_goes_over_the_model_and_the_model_over_the_defaults() -> None:
    chosen = choose(Sampling(temperature=0.2, seed=7), Sampling(temperature=0.6, top_p=0.9, top_k=20))
    assert chosen == Choice(0.2, top_p=0.9, top_k=20, seed=7)


@pytest.mark.parametrize("temperature", [0, 1e-6])
def test_a_temperature_of_nearly_nothing_is_greedy(temperature: float) -> None:
    assert choose(Sampling(temperature=temperature), Sampling()).temperature == 0.0


def test_no_top_k_is_none_whatever_its_spelling() -> None:
    assert choose(Sampling(top_k=-1), Sampling(top_k=50)).top_k == 0


@pytest.mark.parametrize(
    "field",
    [
        {"logprobs": 5},
        {"stop": ["\n"]},
        {"presence_penalty": 0.5},
        {"frequency_penalty": 1},
        {"logit_bias": {"3": 1}},
        {"response_format": {"type": "json_object"}},
        {"tools": [{}]},
        {"echo": True},
        {"best_of": 2},
        {"skip_special_tokens": False},
        {"chat_template_kwargs": {"enable_thinking": False}},
        {"continue_final_message": True},
    ],
)
def test_a_field_that_would_change_the_answer_is_refused_by_name(field: dict[str, Any]) -> None:
    (name,) = field
    with pytest.raises(RequestError, match=f"does not do {name}=") as refusal:
        refuse_unbuilt(field)
    assert (refusal.value.status, refusal.value.param) == (400, name)


def test_fields_that_change_nothing_are_taken() -> None:
    refuse_unbuilt(
        {
            "user": "me",
            "logprobs": None,
            "stop": [],
            "presence_penalty": 0.0,
            "frequency_penalty": 0,
            "response_format": {"type": "text"},
            "skip_special_tokens": True,
        }
    )
