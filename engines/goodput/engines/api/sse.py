"""The bytes of a streamed answer, as vLLM 0.32 sends them: one `data:` event per engine output.

The field order and which fields are null is that of vLLM's `CompletionStreamResponse` and
`ChatCompletionStreamResponse` (entrypoints/openai/*/serving.py).
"""

import json
from collections.abc import Sequence
from typing import Any

DONE = b"data: [DONE]\n\n"
_CONTINUOUS = b'%b%b%b,"usage":{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d}}\n\n'


def usage(prompt_tokens: int, completion_tokens: int) -> dict[str, int]:
    """A usage object in vLLM's field order."""
    return {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "completion_tokens": completion_tokens,
    }


class EventWriter:
    """Builds the events of one stream.

    Args:
        chat: chat chunks instead of completion chunks.
        head: id, created time and model name of the answer.
        prompt_tokens: for the usage.
        include_usage: the last chunk carries the usage; otherwise the ending one has the fingerprint.
        continuous_usage: every chunk carries the usage so far.
        prompt_ids: where the chunks carry token ids, those of the prompt for the first one.
    """

    def __init__(
        self,
        *,
        chat: bool,
        head: "Head",
        prompt_tokens: int,
        include_usage: bool,
        continuous_usage: bool,
        prompt_ids: Sequence[int] | None = None,
    ) -> None:
        self._chat = chat
        self._head = head
        self._prompt_tokens = prompt_tokens
        self._include_usage = include_usage
        self._continuous = continuous_usage
        self._prompt_ids = prompt_ids
        self._with_ids = prompt_ids is not None
        head_json = json.dumps(head.fields(chat=chat, chunk=True), separators=(",", ":"))[:-1]
        opening = '"delta":{"content":' if chat else '"text":'
        self._start = f'data: {head_json},"choices":[{{"index":0,{opening}'.encode()
        closing = "}" if chat else ""
        tail = '"token_ids":null' if chat else '"stop_reason":null,"prompt_token_ids":null,"token_ids":null'
        self._plain_end = f'{closing},"logprobs":null,"finish_reason":null,{tail}}}]'.encode()
        if chat:
            tail = f'"stop_reason":null,{tail}'
        self._final_end = f'{closing},"logprobs":null,"finish_reason":"%b",{tail}}}]'.encode()
        self._fingerprint = f',"system_fingerprint":"{head.fingerprint}"'.encode()

    def opening(self) -> bytes:
        """What precedes the first token: the role chunk of a chat, nothing for a completion."""
        if not self._chat:
            return b""
        delta = {"role": "assistant", "content": ""}
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
        document: dict[str, Any] = {**self._head.fields(chat=True, chunk=True), "choices": [choice]}
        if self._continuous:
            document["usage"] = usage(self._prompt_tokens, 0)
        prompt_ids, self._prompt_ids = self._prompt_ids, None
        return _event({**document, "prompt_token_ids": prompt_ids, "prompt_text": None})

    def tokens(self, text_json: bytes, total: int, finish_reason: str | None, ids: Sequence[int] = ()) -> bytes:
        """One chunk.

        Args:
            text_json: its text as a JSON string, quotes included.
            total: tokens sent so far, with this chunk's.
            finish_reason: set in the ending chunk.
            ids: its tokens, for a stream that carries them.
        """
        end = self._plain_end if finish_reason is None else self._final_end % finish_reason.encode()
        if self._with_ids:
            end = self._end_with_ids(end, ids)
        if self._continuous:
            prompt = self._prompt_tokens
            return _CONTINUOUS % (self._start, text_json, end, prompt, prompt + total, total)
        if finish_reason is not None and not self._include_usage:
            end += self._fingerprint
        return b"%b%b%b}\n\n" % (self._start, text_json, end)

    def _end_with_ids(self, end: bytes, ids: Sequence[int]) -> bytes:
        end = end.replace(b'"token_ids":null', b'"token_ids":' + _compact(list(ids)))
        if self._prompt_ids is not None:
            end = end.replace(b'"prompt_token_ids":null', b'"prompt_token_ids":' + _compact(list(self._prompt_ids)))
            self._prompt_ids = None
        return end

    def closing(self, total: int) -> bytes:
        """What follows the ending chunk: the usage chunk where asked for, and the terminal event."""
        if not self._include_usage:
            return DONE
        document = {
            **self._head.fields(chat=self._chat, chunk=True),
            "choices": [],
            "usage": usage(self._prompt_tokens, total),
            "system_fingerprint": self._head.fingerprint,
        }
        return _event(document) + DONE


class Head:
    """What all parts of one answer share."""

    __slots__ = ("created", "fingerprint", "identifier", "model")

    def __init__(self, *, identifier: str, created: int, model: str, fingerprint: str) -> None:
        self.identifier = identifier
        self.created = created
        self.model = model
        self.fingerprint = fingerprint

    def fields(self, *, chat: bool, chunk: bool) -> dict[str, Any]:
        """id, object, created, model."""
        kind = "text_completion"
        if chat:
            kind = "chat.completion.chunk" if chunk else "chat.completion"
        return {"id": self.identifier, "object": kind, "created": self.created, "model": self.model}


def whole_answer(
    head: Head,
    *,
    chat: bool,
    text: str,
    finish_reason: str,
    counts: dict[str, int],
    ids: tuple[Sequence[int], Sequence[int]] | None = None,
) -> dict[str, Any]:
    """The body of an answer that is not streamed; `ids`: those of prompt and output, where they were asked for."""
    prompt_ids, output_ids = (None, None) if ids is None else (list(ids[0]), list(ids[1]))
    choice: dict[str, Any]
    if chat:
        message = {"role": "assistant", "content": text, "refusal": None, "annotations": None, "audio": None}
        message |= {"function_call": None, "reasoning": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason}
        choice |= {"stop_reason": None, "token_ids": output_ids, "routed_experts": None}
    else:
        choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish_reason}
        choice |= {"stop_reason": None, "token_ids": output_ids, "prompt_logprobs": None}
        choice |= {"prompt_token_ids": prompt_ids, "routed_experts": None}
    details = {"prompt_tokens_details": None, "completion_tokens_details": None}
    prompt_fields = {"prompt_logprobs": None, "prompt_token_ids": prompt_ids, "prompt_text": None} if chat else {}
    return {
        **head.fields(chat=chat, chunk=False),
        "choices": [choice],
        "service_tier": None,
        "system_fingerprint": head.fingerprint,
        "usage": counts | details,
        **prompt_fields,
        "kv_transfer_params": None,
        "ec_transfer_params": None,
        "metrics": None,
    }


def _event(document: dict[str, Any]) -> bytes:
    return b"data: " + _compact(document) + b"\n\n"


def _compact(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()
