"""``GET`` of a metrics page, bounded in time and size. Whatever is not Prometheus text is a problem, not an error."""

from __future__ import annotations

import time
from dataclasses import dataclass

import httpx

from goodput.runner.errors import ServerGoneError

MAX_BYTES = 16 << 20  # vLLM sends 50 to 60 kB per engine
_TEXT = ("text/plain", "application/openmetrics-text", "")  # "": a server that does not say


@dataclass(frozen=True)
class Page:
    """What ``GET /metrics`` gave.

    Attributes:
        text: the exposition; empty where there was none.
        problem: why there is none.
    """

    text: str = ""
    problem: str | None = None


def get_page(client: httpx.Client, path: str, *, timeout_seconds: float) -> Page:
    """The page at that path.

    Raises:
        ServerGoneError: nothing answers, or a 5xx does; ``slow`` where it was not there after ``timeout_seconds``.
    """
    deadline = time.monotonic() + timeout_seconds
    body = bytearray()
    try:
        with client.stream("GET", path, headers={"Accept": "text/plain; version=0.0.4"}) as answer:
            problem = _problem(answer, path)
            if problem is not None:
                return Page(problem=problem)
            for part in answer.iter_bytes():
                body += part
                if len(body) > MAX_BYTES:
                    return Page(problem=f"GET {path}: more than {MAX_BYTES >> 20} MiB")
                if time.monotonic() > deadline:
                    raise ServerGoneError(f"GET {path}: still coming after {timeout_seconds:g} s", slow=True)
    except httpx.HTTPError as error:
        raise unanswered(error, f"GET {path}") from error
    text = body.decode("utf-8", errors="replace")
    return (
        Page(problem=f"GET {path}: not metrics but JSON or HTML")
        if text.lstrip()[:1] in ("{", "[", "<")
        else Page(text)
    )


def unanswered(error: httpx.HTTPError, what: str) -> ServerGoneError:
    """The error of a request that got no answer."""
    slow = isinstance(error, httpx.ReadTimeout | httpx.WriteTimeout | httpx.PoolTimeout)
    return ServerGoneError(f"{what}: {type(error).__name__} {error}".strip(), slow=slow)


def _problem(answer: httpx.Response, path: str) -> str | None:
    if answer.status_code >= 500:
        raise ServerGoneError(f"GET {path}: {answer.status_code}")
    if not answer.is_success:
        return f"GET {path}: {answer.status_code}"
    kind = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    return None if kind in _TEXT else f"GET {path}: {kind}, not Prometheus text"
