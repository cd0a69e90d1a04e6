"""What a server answers to a few fixed prompts: whether a config changes the output can be seen from it.

One prompt at a time, temperature 0, a fixed number of tokens: batches have no part in it. Prompts are text, the same
for every config and block, so that engines that tokenize differently can be compared too.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import Any

from goodput.analysis.schema.base import Endpoint
from goodput.analysis.schema.cell import Outputs
from goodput.runner.contract import OutputCheck
from goodput.runner.errors import RequestRefusedError
from goodput.runner.server import Server
from goodput.runner.stop import Stop
from goodput.runner.tokens import words

PROMPT_WORDS = 24


def prompts(check: OutputCheck) -> list[str]:
    """The texts: words of the bundled list, a pure function of the seed."""
    draw = random.Random(check.seed)
    return [" ".join(draw.choices(words(), k=PROMPT_WORDS)) for _ in range(check.prompts)]


def continuations(server: Server, endpoint: Endpoint, check: OutputCheck, stop: Stop) -> Outputs:
    """Ask for all of them, one after another.

    Raises:
        RequestRefusedError: the server does not take such a request, or cuts its answer.
        ServerGoneError: it does not answer.
        StoppedError: asked to stop.
    """
    texts = prompts(check)
    found: list[tuple[int, ...] | str] = []
    for text in texts:
        stop.check()
        found.append(
            _whole(answer(server.generate(*request(endpoint, server.model, text, check.tokens))), check.tokens)
        )
    return Outputs(
        prompts_sha256=hashlib.sha256("\0".join(texts).encode()).hexdigest(),
        continuations=tuple(found),
    )


def _whole(found: tuple[int, ...] | str, tokens: int) -> tuple[int, ...] | str:
    """The answer, unless it was cut: configs of different model lengths would differ though their models agree."""
    if isinstance(found, tuple) and len(found) < tokens:
        raise RequestRefusedError(
            f"the server answered {len(found)} of {tokens} tokens: its max_model_len has no room for "
            f"{PROMPT_WORDS} words and {tokens} tokens"
        )
    return found


def request(endpoint: Endpoint, model: str, text: str, tokens: int) -> tuple[str, dict[str, Any]]:
    """Path and body of one request. ``ignore_eos`` and ``return_token_ids`` are vLLM's."""
    body: dict[str, Any] = {"model": model, "temperature": 0, "ignore_eos": True, "return_token_ids": True}
    if endpoint == "chat":
        messages = [{"role": "user", "content": text}]
        return "/v1/chat/completions", body | {"messages": messages, "max_completion_tokens": tokens}
    return "/v1/completions", body | {"prompt": text, "max_tokens": tokens}


def answer(choice: dict[str, Any]) -> tuple[int, ...] | str:
    """Token ids where the engine gives them, else the text."""
    ids = choice.get("token_ids")
    if isinstance(ids, Sequence) and ids and all(isinstance(token, int) for token in ids):
        return tuple(ids)
    message = choice.get("message")
    text = message.get("content") if isinstance(message, dict) else choice.get("text")
    return str(text or "")
