"""The text of a growing output: what each token adds, once it is certain."""

import json
from collections.abc import Callable, Sequence

#: Tokens of the prompt that the first one may lean on (a leading space, a character in several tokens).
_CONTEXT = 6
#: Tokens that one character may need. What is not one by then never will be.
_LONGEST = 8
_INCOMPLETE = "\N{REPLACEMENT CHARACTER}"


class OutputTexts:
    """Decodes a short tail anew for each token and gives what is new.

    A character that needs several tokens comes with the last of them; until then tokens add nothing, as in vLLM.

    Args:
        decode: ids to text, without special tokens.
        prompt: the ids before the output.
    """

    def __init__(self, decode: Callable[[Sequence[int]], str], prompt: Sequence[int]) -> None:
        self._decode = decode
        self._ids = list(prompt[-_CONTEXT:])
        self._told = len(self._ids)  # of these ids the text is out

    def of(self, tokens: Sequence[int]) -> bytes:
        """See `Texts`."""
        return json.dumps("".join(self._piece(token) for token in tokens)).encode()

    def _piece(self, token: int) -> str:
        self._ids.append(token)
        before, now = self._decode(self._ids[: self._told]), self._decode(self._ids)
        if now.endswith(_INCOMPLETE) and len(self._ids) - self._told < _LONGEST:
            return ""
        self._ids = self._ids[-_CONTEXT:]
        self._told = len(self._ids)
        return now[len(before) :]
