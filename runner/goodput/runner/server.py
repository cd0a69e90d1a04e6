"""The server's HTTP interface outside the hot path. Endpoints that a server lacks answer None."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from goodput.analysis.schema.base import Endpoint
from goodput.runner.contract import ServerFacts
from goodput.runner.errors import PlanError, ServerGoneError
from goodput.runner.load.tls import client_context
from goodput.runner.page import Page, get_page
from goodput.runner.refusals import broken, refused, without_key

_MISSING = frozenset({404, 405, 501})


class Server:
    """Calls to one server address. Not shared between threads; use `sibling` for another one.

    Raises from every call: `ServerGoneError` where nothing answers, or a 5xx does; one of its kinds where the
    certificate is not to be trusted or an external server cannot be reached.
    """

    def __init__(self, facts: ServerFacts, *, model: str, timeout_seconds: float = 10.0) -> None:
        self.facts = facts
        self.model = model
        self.headers = authorization(facts)
        self._timeout_seconds = timeout_seconds
        # Proxy variables of the environment must not come between runner and server.
        self._client = httpx.Client(
            base_url=facts.url.rstrip("/").removesuffix("/v1"),
            headers=self.headers,
            timeout=timeout_seconds,
            trust_env=False,
            verify=verification(facts),
        )

    def sibling(self, *, timeout_seconds: float | None = None) -> Server:
        """The same server over connections of its own."""
        return Server(self.facts, model=self.model, timeout_seconds=timeout_seconds or self._timeout_seconds)

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def healthy(self) -> bool | None:
        """``GET /health``; None where there is no such endpoint."""
        return None if self._call("GET", "/health") is None else True

    def version(self) -> str | None:
        """``GET /version``."""
        version = _object(self._call("GET", "/version")).get("version")
        return version if isinstance(version, str) else None

    def models(self) -> list[dict[str, Any]] | None:
        """The entries of ``GET /v1/models``."""
        data = _object(self._call("GET", "/v1/models")).get("data")
        return [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else None

    def info(self) -> dict[str, Any] | None:
        """``GET /server_info``: only in vLLM's development mode."""
        return _object(self._call("GET", "/server_info", params={"config_format": "json"})) or None

    def metrics(self) -> Page:
        """``GET /metrics``. Neither a page that trickles in nor a huge one holds the caller up."""
        try:
            return get_page(self._client, "/metrics", timeout_seconds=self._timeout_seconds)
        except ServerGoneError as error:
            if isinstance(error.__cause__, httpx.HTTPError):
                raise self._broken("GET /metrics", error.__cause__) from error
            raise

    def tokenize(
        self, *, prompt: str | None = None, messages: Sequence[Mapping[str, str]] | None = None
    ) -> list[int] | None:
        """Token ids of a text without special tokens, or of messages with the chat template around them."""
        body: dict[str, Any] = {"model": self.model}
        if messages is None:
            body |= {"prompt": prompt, "add_special_tokens": False}
        else:
            body |= {"messages": list(messages), "add_generation_prompt": True}
        tokens = _object(self._call("POST", "/tokenize", json=body)).get("tokens")
        return tokens if isinstance(tokens, list) and all(isinstance(token, int) for token in tokens) else None

    def reset_prefix_cache(self) -> bool | None:
        """``POST /reset_prefix_cache``: whether it was reset; None where the server cannot, or does not say.

        vLLM says ``{"success": …}`` since 0.26; before, the answer is always empty (research: vllm#46893).
        """
        success = _object(self._call("POST", "/reset_prefix_cache")).get("success")
        return success if isinstance(success, bool) else None

    def complete(self, endpoint: Endpoint, text: str) -> None:
        """One real request for one token.

        Raises:
            RequestRefusedError: it was not answered with a choice; the message has the answer's beginning.
            ServerMismatchError: the model is not served.
        """
        self.generate(*completion(endpoint, self.model, text))

    def generate(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The first choice of an answer that is not streamed. Raises as `complete` does."""
        try:
            answer = self._client.post(path, json=body, timeout=max(60.0, self._timeout_seconds))
        except httpx.HTTPError as error:
            raise self._broken(f"POST {path}", error) from error
        choices = _object(answer).get("choices")
        if answer.status_code != 200 or not isinstance(choices, list) or not choices:
            raise refused(f"POST {path}", answer.status_code, without_key(answer.text, self.headers), self.model)
        return choices[0] if isinstance(choices[0], dict) else {}

    def _call(self, method: str, path: str, **options: Any) -> httpx.Response | None:
        try:
            answer = self._client.request(method, path, **options)
        except httpx.HTTPError as error:
            raise self._broken(f"{method} {path}", error) from error
        if answer.status_code in _MISSING:
            return None
        if answer.status_code >= 500:
            raise ServerGoneError(f"{method} {path}: {answer.status_code}")
        return answer if answer.is_success else None

    def _broken(self, what: str, error: httpx.HTTPError) -> ServerGoneError:
        base = self._client.base_url  # netloc has no user and no password
        return broken(what, f"{base.scheme}://{base.netloc.decode()}", error, external=self.facts.external)


def verification(facts: ServerFacts) -> ssl.SSLContext | bool:
    """How certificates are verified; False for http, which has none.

    Raises:
        PlanError: the authority's file cannot be read.
    """
    if not facts.url.startswith("https:"):
        return False
    try:
        return client_context(facts.ca_file)
    except OSError as error:
        message = f"the certificate authority in {facts.ca_file} (external.caSecretRef) cannot be read: {error}"
        raise PlanError(message) from error


def authorization(facts: ServerFacts) -> dict[str, str]:
    """The header that carries the API key, empty where there is none.

    Raises:
        PlanError: the variable that should hold the key is not set.
    """
    if facts.api_key_env is None:
        return {}
    key = os.environ.get(facts.api_key_env, "").strip()  # Secrets made from files end with a line end
    if not key:
        raise PlanError(f"the environment variable {facts.api_key_env} (external.apiKeySecretRef) is not set")
    if not key.isascii() or not key.isprintable():
        raise PlanError(f"the key in {facts.api_key_env} (external.apiKeySecretRef) has bytes that no header can carry")
    return {"Authorization": f"Bearer {key}"}


def completion(endpoint: Endpoint, model: str, text: str) -> tuple[str, dict[str, Any]]:
    """Path and body of a request for one token that is not streamed."""
    if endpoint == "chat":
        messages = [{"role": "user", "content": text}]
        return "/v1/chat/completions", {"model": model, "messages": messages, "max_completion_tokens": 1}
    return "/v1/completions", {"model": model, "prompt": text, "max_tokens": 1}


def _object(answer: httpx.Response | None) -> dict[str, Any]:
    try:
        document = None if answer is None else answer.json()
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
