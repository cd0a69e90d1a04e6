"""What vLLM refuses of speculative decoding and of backends, refused before any server starts.

Source: vLLM 0.32.0 ``vllm/engine/arg_utils.py`` and ``vllm/config/{vllm,speculative}.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from goodput.analysis.schema.planned import Config
from goodput.operator.spec.configproblem import number, problem
from goodput.operator.spec.errors import Problem

#: Methods that asynchronous scheduling supports; those of multi-token prediction end in mtp.
_ASYNC = frozenset({"eagle", "eagle3", "extract_hidden_states", "dflash", "ngram_gpu", "draft_model", "dspark", "mtp"})


def speculation_problems(config: Config) -> Iterator[Problem]:
    """Refusals of one config's speculative decoding."""
    asked = _asked(config.flags)
    if asked is None:
        return
    budget, seqs = number(config, "max_num_batched_tokens"), number(config, "max_num_seqs")
    tokens, method = asked.get("num_speculative_tokens"), str(asked.get("method", ""))
    if isinstance(tokens, int) and budget is not None:
        lora = config.flags.get("enable_lora") == "true"
        if lora and seqs is not None and budget < seqs * (tokens + 1):
            message = f"must be at least max_num_seqs x (num_speculative_tokens + 1) = {seqs * (tokens + 1)} with LoRA"
            yield problem(config, "max_num_batched_tokens", message, "raise it, or speculate fewer tokens")
        slots = _slots(asked, method, tokens)
        if slots and budget <= slots:
            message = f"must be above the {slots} draft tokens of {method}"
            yield problem(config, "max_num_batched_tokens", message, "raise it, or speculate fewer tokens")
    if config.flags.get("async_scheduling") == "true":
        yield from _asynchronous(config, asked, method)


def backend_problems(config: Config) -> Iterator[Problem]:
    """The attention backend may be named in one place only."""
    flags = config.flags
    nested = flags.get("attention_config.backend") or _object(flags.get("attention_config")).get("backend")
    if "attention_backend" in flags and nested is not None:
        message = f"and attention_config.backend ({nested}) both name the backend"
        yield problem(config, "attention_backend", message, "keep one of them")


def _asynchronous(config: Config, asked: Mapping[str, Any], method: str) -> Iterator[Problem]:
    if method and method not in _ASYNC and not method.endswith("_mtp"):
        message = f"does not work with speculative decoding by {method}"
        yield problem(config, "async_scheduling", message, "leave it out, or use eagle, mtp or a draft model")
    elif asked.get("disable_padded_drafter_batch") is True:
        message = "does not work with disable_padded_drafter_batch"
        yield problem(config, "async_scheduling", message, "leave one of them out")


def _slots(asked: Mapping[str, Any], method: str, tokens: int) -> int:
    """Slots of a step that drafts take from the budget (``SpeculativeConfig.max_num_new_slots_for_drafting``)."""
    if method == "dflash":
        return tokens
    if asked.get("parallel_drafting") is True or method == "dspark":
        return tokens if method == "draft_model" else tokens - 1
    return int(method == "draft_model")


def _asked(flags: Mapping[str, str]) -> dict[str, Any] | None:
    """The speculative config that the flags say: as JSON, by keys below it, or by the short flags."""
    found = _object(flags.get("speculative_config"))
    for flag, value in flags.items():
        base, dot, key = flag.partition(".")
        if dot and base == "speculative_config":
            found[key] = _value(value)
    short = {"method": flags.get("spec_method"), "num_speculative_tokens": flags.get("spec_tokens")}
    found |= {key: _value(value) for key, value in short.items() if value is not None}
    return found or None


def _object(text: str | None) -> dict[str, Any]:
    found = _value(text) if text else {}
    return dict(found) if isinstance(found, dict) else {}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
