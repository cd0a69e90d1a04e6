"""Why a server cannot be talked to, and why it refuses: one reason for each cause that a user can mend (pure)."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator, Mapping

import httpx

from goodput.runner.errors import (
    KeyExpiredError,
    KeyRefusedError,
    NotOpenAiError,
    RequestRefusedError,
    RunnerError,
    ServerGoneError,
    ServerMismatchError,
    TlsExpiredError,
    TlsFailedError,
    TlsHostnameError,
    TlsUntrustedError,
    UnreachableError,
)

_TEXT_IN_MESSAGES = 300
_SCHEME = "Bearer "

# OpenSSL's X509_V_ERR_…: verify_code of a certificate that was refused.
_NOT_NOW = frozenset({9, 10})  # CERT_NOT_YET_VALID, CERT_HAS_EXPIRED
_ANOTHER = frozenset({62, 64})  # HOSTNAME_MISMATCH, IP_ADDRESS_MISMATCH


def broken(what: str, origin: str, error: httpx.HTTPError, *, external: bool) -> ServerGoneError:
    """What a transport error means.

    Args:
        what: the call, e.g. ``GET /health``.
        origin: scheme, host and port of the server.
        error: as httpx raised it.
        external: the server is the user's: that it cannot be reached at all is for the user to mend.
    """
    tls = next((cause for cause in _causes(error) if isinstance(cause, ssl.SSLError)), None)
    if tls is not None:
        return _of_tls(origin, tls)
    words = f"{type(error).__name__} {error}".strip()
    if external and isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return UnreachableError(
            f"{origin} cannot be reached ({words}); correct external.url. Proxies of the environment are not used"
        )
    slow = isinstance(error, httpx.ReadTimeout | httpx.WriteTimeout | httpx.PoolTimeout)
    return ServerGoneError(f"{what}: {words}", slow=slow)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _of_tls(origin: str, error: ssl.SSLError) -> ServerGoneError:
    if not isinstance(error, ssl.SSLCertVerificationError):
        return TlsFailedError(f"{origin} speaks no TLS that can be used ({error}); correct external.url")
    words = error.verify_message.rstrip(".")
    if error.verify_code in _NOT_NOW:
        return TlsExpiredError(f"the certificate of {origin} is not valid now ({words}); renew it on the server")
    if error.verify_code in _ANOTHER:
        return TlsHostnameError(
            f"the certificate of {origin} is for another host ({words}); write the host that it names in external.url"
        )
    return TlsUntrustedError(
        f"the certificate of {origin} is of no trusted authority ({words}); give its authority in external.caSecretRef"
    )


def refused(what: str, status: int, text: str, model: str) -> RunnerError:
    """What it means that an ordinary request was answered with that status and text, which holds no choice."""
    words = f"{what}: {status} {text[:_TEXT_IN_MESSAGES]}".rstrip()
    if status >= httpx.codes.INTERNAL_SERVER_ERROR:
        return ServerGoneError(words)
    if status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        if "expired" in text.lower():
            return KeyExpiredError(f"{words}; put a new key into external.apiKeySecretRef")
        return KeyRefusedError(f"{words}; correct the key of external.apiKeySecretRef")
    document = _object(text)
    if status == httpx.codes.NOT_FOUND and document is not None and "model" in json.dumps(document).lower():
        return ServerMismatchError(f"{words}; it does not serve {model}: correct model.servedName")
    if status in (httpx.codes.NOT_FOUND, httpx.codes.METHOD_NOT_ALLOWED) or (status < 400 and document is None):
        return NotOpenAiError(f"{words}; there is no OpenAI endpoint: correct external.url (without /v1)")
    return RequestRefusedError(words)


def _object(text: str) -> dict[str, object] | None:
    try:
        document = json.loads(text)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def without_key(text: str, headers: Mapping[str, str]) -> str:
    """The text with the API key taken out: some servers repeat it when they refuse it."""
    key = headers.get("Authorization", "").removeprefix(_SCHEME)
    return text.replace(key, "…") if key else text
