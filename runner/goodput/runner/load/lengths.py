"""How long each request is: prompt and output tokens by index, drawn from the load's seed (pure)."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from goodput.analysis.schema.planned import Load
from goodput.runner.load.errors import PromptError
from goodput.runner.load.processes import generator

_DRAWN_AT_ONCE = 4096
_DRAWS = 100  # batches without one pair that fits: the limit leaves nothing


class Lengths(Protocol):
    """Prompt and output length of each request of the endless stream.

    Attributes:
        unique: from this request on prompts repeat; None: they never do, or not as far as was asked.
        left_out: rows of a dataset that were too long, as far as was asked.
    """

    unique: int | None
    left_out: int

    def at(self, index: int) -> tuple[int, int]:
        """Of the ``index``-th request, in tokens."""
        ...


class PlannedLengths:
    """The lengths that a load names: exact, or drawn around its means.

    ``length_variation`` v is standard deviation / mean for every distribution. uniform: mean·(1 ± √3·v).
    lognormal: σ² = ln(1 + v²), μ = ln(mean) − σ²/2. Lengths are rounded and at least 1 (a prompt longer than its
    shared prefix). A pair above ``max_tokens`` is drawn again: prompt and output fit together.

    Args:
        load: with prompt_tokens and output_tokens.
        seed: of this block and load.
        shortest: of a prompt: a chat template has a length of its own.
    """

    unique: int | None = None
    left_out = 0

    def __init__(self, load: Load, seed: int, *, shortest: int = 1) -> None:
        if load.prompt_tokens is None or load.output_tokens is None:
            raise PromptError("the load names no lengths: they come from its dataset")
        self._load = load
        self._means = (load.prompt_tokens, load.output_tokens)
        self._shortest = max(shortest, (load.prefix_tokens or 0) + 1)
        self._draw = generator(seed, "lengths")
        self._pairs: list[tuple[int, int]] = []

    def at(self, index: int) -> tuple[int, int]:
        """See `Lengths`. Raises `PromptError` where no pair fits ``max_tokens``."""
        if self._load.length_distribution is None:
            return self._means
        for _ in range(_DRAWS):
            if index < len(self._pairs):
                return self._pairs[index]
            self._more()
        raise PromptError(f"hardly any request of these lengths has at most {self._load.max_tokens} tokens")

    def _more(self) -> None:
        prompts, outputs = self._lengths(self._means[0], self._shortest), self._lengths(self._means[1], 1)
        if self._load.max_tokens is not None:
            fits = prompts + outputs <= self._load.max_tokens
            prompts, outputs = prompts[fits], outputs[fits]
        self._pairs += zip(prompts.tolist(), outputs.tolist(), strict=True)

    def _lengths(self, mean: int, shortest: int) -> NDArray[np.int64]:
        variation = self._load.length_variation or 0.0
        match self._load.length_distribution:
            case "uniform":
                drawn = mean * (1 + math.sqrt(3) * variation * (2 * self._draw.random(_DRAWN_AT_ONCE) - 1))
            case "normal":
                drawn = mean * (1 + variation * self._draw.standard_normal(_DRAWN_AT_ONCE))
            case _:
                square = math.log1p(variation**2)
                normal = self._draw.standard_normal(_DRAWN_AT_ONCE)
                drawn = mean * np.exp(math.sqrt(square) * normal - square / 2)
        return np.maximum(np.rint(drawn), shortest).astype(np.int64)
