"""Requests of vLLM 0.32's OpenAI API, checked: what is accepted, and how the rest is refused.

Sources: vLLM 0.32.0, renderers/params.py, renderers/base.py, v1/engine/input_processor.py, sampling_params.py.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from goodput.engines.api.bodies import ChatBody, CompletionBody, GenerationBody, StreamOptions
from goodput.engines.api.engine import Tokenizer
from goodput.engines.errors import RequestError

_SAMPLING_RULES: dict[str, tuple[Callable[[float], bool], str]] = {
    "temperature": (lambda value: value >= 0, "non-negative"),
    "top_p": (lambda value: 0 < value <= 1, "in (0, 1]"),
    "top_k": (lambda value: value >= -1, "0 (disable), or at least 1"),
    "min_p": (lambda value: 0 <= value <= 1, "in [0, 1]"),
    "repetition_penalty": (lambda value: value > 0, "greater than zero"),
}


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are chosen; None where the request does not say. A temperature of 0 means greedy."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Generation:
    """A checked request.

    Attributes:
        prompt: token ids.
        max_tokens: limit on the output, already cut to the model length.
        continuous_usage: every chunk carries the usage so far.
        return_ids: the answer carries the token ids of prompt and output.
        others: fields of the body that are not read here.
    """

    prompt: list[int]
    max_tokens: int
    min_tokens: int
    ignore_eos: bool
    stream: bool
    include_usage: bool
    continuous_usage: bool
    return_ids: bool = False
    sampling: Sampling = Sampling()
    others: Mapping[str, Any] = field(default_factory=dict)


def check_model(asked: str | None, served: str) -> None:
    """Raises a 404 `RequestError` for a model that is not served."""
    if asked and asked != served:
        message = f"The model `{asked}` does not exist. Valid aliases: {served}."
        raise RequestError(message, status=404, kind="NotFoundError", param="model")


def check_completion(body: CompletionBody, tokenizer: Tokenizer, max_model_len: int) -> Generation:
    """Checks a completion request and turns its prompt into ids.

    Raises:
        RequestError: 400.
    """
    limit = 16 if body.max_tokens is None else body.max_tokens
    _check_limit(limit, "max_tokens", max_model_len)
    prompt = _completion_prompt(body, tokenizer)
    return _generation(body, prompt, limit, tokenizer.vocab_size, max_model_len)


def check_chat(body: ChatBody, tokenizer: Tokenizer, max_model_len: int) -> Generation:
    """Checks a chat request and renders its messages into ids; without a limit, up to the model length.

    Raises:
        RequestError: 400.
    """
    name = "max_tokens" if body.max_completion_tokens is None else "max_completion_tokens"
    limit = body.max_tokens if body.max_completion_tokens is None else body.max_completion_tokens
    if limit is not None:
        _check_limit(limit, name, max_model_len)
    messages = [(message.role, message.text) for message in body.messages]
    prompt = tokenizer.encode_chat(messages, generation_prompt=body.add_generation_prompt)
    return _generation(body, prompt, limit, tokenizer.vocab_size, max_model_len)


def check_vocabulary(ids: list[int], vocab_size: int) -> None:
    """Raises a 400 `RequestError` for an id that the model does not have."""
    for token in (min(ids, default=0), max(ids, default=0)):
        if not 0 <= token < vocab_size:
            raise RequestError(f"Token id {token} is out of vocabulary")


def _check_limit(limit: int, name: str, max_model_len: int) -> None:
    if limit < 1:
        raise RequestError(f"{name} must be at least 1, got {limit}.", param=name)
    if limit > max_model_len:
        raise RequestError(
            f"{name}={limit} cannot be greater than max_model_len={max_model_len}. Please request fewer output tokens.",
            param=name,
        )


def _completion_prompt(body: CompletionBody, tokenizer: Tokenizer) -> list[int]:
    prompt = body.prompt
    if prompt is None or prompt == "":
        raise RequestError("Either prompt or prompt_embeds must be provided and non-empty.", param="prompt")
    if isinstance(prompt, list) and prompt and not isinstance(prompt[0], int):
        if len(prompt) > 1:
            raise RequestError("This engine takes one prompt per request.", param="prompt")
        prompt = prompt[0]
    if isinstance(prompt, str):
        return tokenizer.encode(prompt, add_special_tokens=body.add_special_tokens)
    return [token for token in prompt if isinstance(token, int)]


def _generation(
    body: GenerationBody, prompt: list[int], limit: int | None, vocab_size: int, max_model_len: int
) -> Generation:
    if body.n not in (None, 1):
        raise RequestError("This engine generates one choice per request (n=1).", param="n")
    if body.stream_options is not None and not body.stream:
        raise RequestError("Stream options can only be defined when `stream=True`.", param="stream_options")
    _check_length(len(prompt), max_model_len)
    check_vocabulary(prompt, vocab_size)
    max_tokens = max_model_len - len(prompt)
    if limit is not None:
        max_tokens = min(limit, max_tokens)
    if not 0 <= body.min_tokens <= max_tokens:
        raise RequestError(
            f"min_tokens must be between 0 and max_tokens={max_tokens}, got {body.min_tokens}.",
            param="min_tokens",
        )
    options = body.stream_options or StreamOptions()
    usage = bool(options.include_usage)
    return Generation(
        prompt=prompt,
        max_tokens=max_tokens,
        min_tokens=body.min_tokens,
        ignore_eos=body.ignore_eos,
        stream=bool(body.stream),
        include_usage=usage,
        continuous_usage=usage and bool(options.continuous_usage_stats),
        return_ids=bool(body.return_token_ids),
        sampling=_sampling(body),
        others=body.model_extra or {},
    )


def _sampling(body: GenerationBody) -> Sampling:
    for name, (fits, rule) in _SAMPLING_RULES.items():
        value = getattr(body, name)
        if value is not None and not fits(value):
            raise RequestError(f"{name} must be {rule}, got {value}.", param=name)
    return Sampling(
        temperature=body.temperature,
        top_p=body.top_p,
        top_k=body.top_k,
        min_p=body.min_p,
        repetition_penalty=body.repetition_penalty,
        seed=body.seed,
    )


def _check_length(length: int, max_model_len: int) -> None:
    if length == 0:
        raise RequestError("The decoder prompt cannot be empty")
    if length > max_model_len:
        raise RequestError(
            f"This model's maximum context length is {max_model_len} tokens. However, your prompt contains "
            f"{length} input tokens, which exceeds this limit even without any output tokens. "
            "Please reduce the length of the input prompt.",
            param="input_tokens",
        )
    if length == max_model_len:
        raise RequestError(
            f"The decoder prompt (length {length}) plus the number of requested output tokens (at least 1) "
            f"is longer than the maximum model length of {max_model_len}. Make sure that `max_model_len` "
            "is no smaller than the number of text tokens (prompt + requested output tokens)."
        )
