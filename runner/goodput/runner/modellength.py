"""The server's model length, and whether the trial's requests fit it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from goodput.analysis.schema.planned import Load
from goodput.runner.contract import TrialPlan
from goodput.runner.errors import RequestsTooLongError
from goodput.runner.fits import may_not_fit, never_fit, shortest_request


def with_length(resolved: Mapping[str, str], models: Iterable[Mapping[str, Any]] | None, served: str) -> dict[str, str]:
    """With the model length of ``/v1/models``, which vLLM gives even where it hides all else."""
    length = next((entry.get("max_model_len") for entry in models or () if entry.get("id") == served), None)
    return {**({"max_model_len": str(length)} if isinstance(length, int) else {}), **resolved}


def check_lengths(plan: TrialPlan, resolved: Mapping[str, str]) -> None:
    """Whether the server can take requests of every load. Raises `RequestsTooLongError`."""
    length = model_length(resolved)
    loads = () if length is None else never_fit(_loads(plan), length)
    if loads:
        asked = ", ".join(dict.fromkeys(f"{load.lengths} ({shortest_request(load)} tokens)" for load in loads))
        raise RequestsTooLongError(
            f"max_model_len of config {plan.config.label} is {length}, too short for {asked}: "
            "raise it, or shorten promptTokens or outputTokens"
        )


def length_warnings(plan: TrialPlan, resolved: Mapping[str, str]) -> tuple[str, ...]:
    """Loads of which the server can take some requests, and perhaps not all."""
    length = model_length(resolved)
    loads = () if length is None else may_not_fit(_loads(plan), length)
    names = ", ".join(dict.fromkeys(load.lengths for load in loads))
    return (f"requests of {names} may be longer than max_model_len ({length}) and be refused",) if loads else ()


def with_room(shapes: Sequence[tuple[int, int]], resolved: Mapping[str, str]) -> list[tuple[int, int]]:
    """Of prompt and output lengths those that the server can take; all where it can take none: its refusal tells."""
    length = model_length(resolved)
    return [shape for shape in shapes if length is None or sum(shape) <= length] or list(shapes)


def model_length(resolved: Mapping[str, str]) -> int | None:
    """The server's ``max_model_len``; None where it does not say."""
    text = resolved.get("max_model_len", "")
    return int(text) if text.isdecimal() else None


def _loads(plan: TrialPlan) -> Iterable[Load]:
    return (planned.load for planned in plan.loads)
