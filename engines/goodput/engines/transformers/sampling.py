"""From a request's sampling parameters to how its tokens are chosen; what the baseline does not do is refused."""

from collections.abc import Mapping
from typing import Any

from goodput.engines.api.protocol import Sampling
from goodput.engines.errors import RequestError
from goodput.engines.transformers.model import Choice

#: vLLM takes lower temperatures for greedy (`_SAMPLING_EPS` in its sampling_params.py).
_GREEDY_BELOW = 1e-5
#: Fields that would change an answer, with the values (besides null) that change nothing.
_NEUTRAL: dict[str, tuple[object, ...]] = {
    "add_special_tokens": (False,),  # of a chat; a completion's is read
    "allowed_token_ids": (),
    "bad_words": ([],),
    "best_of": (1,),
    "chat_template": (),
    "chat_template_kwargs": ({},),
    "continue_final_message": (False,),
    "documents": ([],),
    "echo": (False,),
    "frequency_penalty": (0,),
    "include_stop_str_in_output": (False,),
    "length_penalty": (1,),
    "logit_bias": ({},),
    "logprobs": (False,),
    "presence_penalty": (0,),
    "prompt_logprobs": (False,),
    "reasoning_effort": (),
    "response_format": ({"type": "text"},),
    "skip_special_tokens": (True,),
    "stop": ([],),
    "stop_token_ids": ([],),
    "structured_outputs": (),
    "suffix": ("",),
    "tools": ([],),
    "top_logprobs": (0,),
    "truncate_prompt_tokens": (),
    "use_beam_search": (False,),
}


def choose(asked: Sampling, defaults: Sampling) -> Choice:
    """The request's parameters over the model's own, over vLLM's defaults."""

    def value(name: str, otherwise: float) -> float:
        found = [getattr(source, name) for source in (asked, defaults)]
        return next((number for number in found if number is not None), otherwise)

    temperature = value("temperature", 1.0)
    return Choice(
        temperature=0.0 if temperature < _GREEDY_BELOW else temperature,
        top_p=value("top_p", 1.0),
        top_k=max(0, int(value("top_k", 0))),
        min_p=value("min_p", 0.0),
        repetition_penalty=value("repetition_penalty", 1.0),
        seed=asked.seed,
    )


def refuse_unbuilt(others: Mapping[str, Any]) -> None:
    """Raises a 400 `RequestError` for a field that would change the answer and is not built."""
    for name, given in others.items():
        if name in _NEUTRAL and given is not None and given not in _NEUTRAL[name]:
            message = f"The Transformers baseline does not do {name}={given!r}; leave it out."
            raise RequestError(message, param=name)
