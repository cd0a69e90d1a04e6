"""The model's tokenizer behind the names that the API knows."""

from collections.abc import Sequence
from typing import Any

from goodput.engines.errors import RequestError


class HubTokenizer:
    """See `Tokenizer`. Ids are those that vLLM makes of the same text: the same library, the same calls."""

    def __init__(self, tokenizer: Any, vocab_size: int) -> None:
        self._tokenizer = tokenizer
        self.vocab_size = vocab_size

    def encode(self, text: str, *, add_special_tokens: bool = False) -> list[int]:
        """See `Tokenizer`."""
        return [int(token) for token in self._tokenizer.encode(text, add_special_tokens=add_special_tokens)]

    def encode_chat(self, messages: Sequence[tuple[str, str]], *, generation_prompt: bool = True) -> list[int]:
        """The template's text, then its ids without special tokens around it: the template has its own."""
        if not self._tokenizer.chat_template:
            raise RequestError("The model's tokenizer has no chat template: send completions.", param="messages")
        conversation = [{"role": role, "content": content} for role, content in messages]
        text = self._tokenizer.apply_chat_template(
            conversation, tokenize=False, add_generation_prompt=generation_prompt
        )
        return self.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        """See `Tokenizer`."""
        return str(self._tokenizer.decode(list(ids)))
