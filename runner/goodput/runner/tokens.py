"""Token ids for prompts: ids that the model certainly knows, and chat text of an exact length."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Protocol

from goodput.runner.contract import TrialPlan
from goodput.runner.errors import TokensError
from goodput.runner.load.processes import Purpose
from goodput.runner.load.prompts import FittedText, Ids, PromptSource, RandomIds

_TOGETHER = 16  # words of one request while single-token words are looked for
_TRIES = 8


class Tokenizer(Protocol):
    """What counts tokens: a server's ``/tokenize``, or whatever stands for it."""

    def tokenize(
        self, *, prompt: str | None = None, messages: Sequence[Mapping[str, str]] | None = None
    ) -> list[int] | None:
        """See `server.Server.tokenize`."""
        ...


@cache
def words() -> tuple[str, ...]:
    """The bundled list of plain English words."""
    return tuple(files("goodput.runner").joinpath("words.txt").read_text(encoding="utf-8").split())


@dataclass(frozen=True)
class Vocabulary:
    """What prompts of a trial are drawn from.

    Attributes:
        pool: token ids.
        fit: turns drawn ids into chat text of exactly ``n`` tokens, template included; None for completions.
        shortest: prompt that can be made: the chat template and one word.
        head_tokens: that a chat template puts before every prompt.
    """

    pool: Sequence[int]
    fit: Callable[[Ids, int], str] | None = None
    shortest: int = 1
    head_tokens: int = 0

    def ids(self, seed: int, purpose: Purpose = "prompts") -> RandomIds:
        """Random ids: a pure function of seed, purpose and index."""
        return RandomIds(self.pool, seed, purpose)

    def prompts(self, seed: int) -> PromptSource:
        """The prompts of one load point: a pure function of seed and index."""
        source = self.ids(seed)
        return source if self.fit is None else FittedText(source, self.fit, self.head_tokens)


def vocabulary(server: Tokenizer, plan: TrialPlan) -> Vocabulary:
    """Learn which ids to use from the server's ``/tokenize``, else take the plan's token id range.

    Raises:
        TokensError: neither gives ids, or chat text cannot be counted.
    """
    if plan.endpoint == "chat":
        spelled = single_token_words(lambda text: server.tokenize(prompt=text))
        fitter = ChatFitter(spelled, lambda text: _chat_ids(server, text))
        return Vocabulary(sorted(spelled), fitter, fitter.template_tokens + 1, fitter.head_tokens)
    if plan.token_id_range is not None:
        return Vocabulary(range(*plan.token_id_range))
    ids = server.tokenize(prompt=" ".join(words()))
    if not ids or len(set(ids)) < 2:
        raise TokensError("the server has no /tokenize; set workload.tokenIdRange to ids that the model knows")
    return Vocabulary(sorted(set(ids)))


def single_token_words(tokenize: Callable[[str], list[int] | None]) -> dict[int, str]:
    """Token id → word, for the listed words that are one token when they follow a space.

    Words are asked for in groups; a group with as many tokens as words is understood at once, others are
    halved. Raises `TokensError` where the server cannot tokenize or knows fewer than two such words.
    """
    found: dict[int, str] = {}
    groups = [words()[start : start + _TOGETHER] for start in range(0, len(words()), _TOGETHER)]
    while groups:
        group = groups.pop()
        ids = tokenize(" " + " ".join(group))
        if ids is None:
            raise TokensError("chat prompts of exact length need the server's /tokenize")
        if len(ids) == len(group):
            found |= dict(zip(ids, group, strict=True))
        elif len(group) > 1:
            groups += [group[: len(group) // 2], group[len(group) // 2 :]]
    if len(found) < 2:
        raise TokensError("no listed word is a single token of this model")
    return found


class ChatFitter:
    """Finds the words of a message so that it has exactly the asked number of tokens, chat template included.

    Args:
        spelled: token id → word.
        ids_of: token ids of a message with the template around it, as the server makes them.

    Attributes:
        template_tokens: of the template alone.
        head_tokens: of the template before the message: every prompt begins with them.
    """

    def __init__(self, spelled: dict[int, str], ids_of: Callable[[str], Sequence[int]]) -> None:
        self._spelled = spelled
        self._ids_of = ids_of
        one, other = sorted(spelled)[:2]
        both = ids_of(self._text([one, other])), ids_of(self._text([other, one]))
        self.template_tokens = len(both[0]) - 2
        same = [here == there for here, there in zip(*both, strict=False)]
        self.head_tokens = same.index(False) if False in same else len(same)

    def __call__(self, ids: Ids, n: int) -> str:
        """Text of ``n`` tokens from the first of ``ids``.

        Raises:
            TokensError: the template alone is as long, or no number of words gives exactly ``n``.
        """
        length = n - self.template_tokens
        drawn = [int(token) for token in ids]
        tried: set[int] = set()
        while 0 < length <= len(drawn) and length not in tried and len(tried) < _TRIES:
            tried.add(length)
            text = self._text(drawn[:length])
            counted = len(self._ids_of(text))
            if counted == n:
                return text
            length += n - counted
        raise TokensError(f"no chat message of exactly {n} tokens (the template has {self.template_tokens})")

    def _text(self, ids: Sequence[int]) -> str:
        return " ".join(self._spelled[token] for token in ids)


def _chat_ids(server: Tokenizer, text: str) -> list[int]:
    ids = server.tokenize(messages=[{"role": "user", "content": text}])
    if ids is None:
        raise TokensError("chat prompts of exact length need the server's /tokenize with messages")
    return ids
