"""Streams that are written when the request is known (pure)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from bench.golden.render import CHUNKED, DONE, LAST_CHUNK, Form, chunk, event, head
from bench.golden.request import Request, asked_tokens, prompt_tokens
from bench.golden.script import Send, Step, Stream, Wait


def steps_for(plan: Stream, request: Request, document: dict[str, Any]) -> Sequence[Step]:
    """The plan carried out for one request."""
    form = Form(request.chat, prompt_tokens(document))
    total = asked_tokens(document) if plan.tokens is None else plan.tokens
    if document.get("stream"):
        options = document.get("stream_options") or {}
        final = bool(options.get("include_usage"))
        continuous = final and bool(options.get("continuous_usage_stats"))
        return stream_steps(plan, form, total, continuous=continuous, final=final)
    wait = Wait(plan.ttft + plan.gap * max(0, total - 1))
    return (wait, Send(whole_answer(form, plan.text * total, total), total), "keep")


@lru_cache(maxsize=1024)  # under load all requests are alike
def stream_steps(plan: Stream, form: Form, total: int, *, continuous: bool, final: bool) -> tuple[Step, ...]:
    """A proper stream for a request that wants the counts in every event (``continuous``) or at the end (``final``)."""
    continuous = plan.usage == "continuous" or (plan.usage == "asked" and continuous)
    final = plan.usage == "final" or (plan.usage == "asked" and final)
    sends: list[Send] = []
    if form.chat and plan.role:
        role = form.document([form.choice("", role="assistant")], form.usage(0) if continuous else None)
        sends.append(Send(chunk(event(role))))
    for done in range(0, total, plan.per_event):
        now = min(total, done + plan.per_event)
        data = form.token(now, plan.text * (now - done), "length" if now == total else None, counted=continuous)
        sends.append(Send(chunk(data), now - done))
    sends = sends or [Send(b"")]
    sends[0] = sends[0]._replace(data=CHUNKED + sends[0].data)
    ending = (chunk(form.closing(total)) if final else b"") + chunk(DONE) + LAST_CHUNK
    sends[-1] = sends[-1]._replace(data=sends[-1].data + ending)
    steps: list[Step] = [Wait(plan.ttft)]
    for send in sends:
        steps += [send, Wait(plan.gap)] if send.tokens else [send]
    return (*(steps[:-1] if isinstance(steps[-1], Wait) else steps), "keep")


def whole_answer(form: Form, text: str, total: int) -> bytes:
    """The answer to a request that wants no stream."""
    kind = "chat.completion" if form.chat else "text_completion"
    choice = form.choice(text, "length")
    if form.chat:
        choice["message"] = {"role": "assistant", "content": choice.pop("delta")["content"]}
    document = {**form.document([choice], form.usage(total)), "object": kind}
    body = json.dumps(document).encode()
    return head("200 OK", "application/json", f"Content-Length: {len(body)}") + body
