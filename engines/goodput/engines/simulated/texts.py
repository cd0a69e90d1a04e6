"""Texts of made-up tokens, kept as JSON strings: few ids are generated, each many times."""

import json
from collections.abc import Sequence

from goodput.engines.simulated.tokens import ToyTokenizer


class TokenTexts:
    """Each token's text, made when first asked for. A text does not depend on what came before it."""

    def __init__(self, tokenizer: ToyTokenizer) -> None:
        self._tokenizer = tokenizer
        self._known: dict[int, bytes] = {}

    def of(self, tokens: Sequence[int]) -> bytes:
        """See `Texts`."""
        if len(tokens) > 1:
            return self._text(tokens)
        (token,) = tokens
        text = self._known.get(token)
        if text is None:
            text = self._known[token] = self._text(tokens)
        return text

    def _text(self, tokens: Sequence[int]) -> bytes:
        return json.dumps(self._tokenizer.decode(tokens)).encode()
