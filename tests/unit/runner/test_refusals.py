"""Every cause that a user can mend has its own reason, and the message says where to mend it."""

from __future__ import annotations

import ssl

import httpx
import pytest

from goodput.runner.refusals import broken, refused, without_key

ORIGIN = "https://gateway:443"


def certificate(code: int, words: str) -> httpx.HTTPError:
    cause = ssl.SSLCertVerificationError(1, words)
    cause.verify_code, cause.verify_message = code, words
    error = httpx.ConnectError(words)
    error.__cause__ = cause
    return error


def tls(words: str) -> httpx.HTTPError:
    error = httpx.ConnectError(words)
    error.__cause__ = ssl.SSLError(1, words)
    return error


@pytest.mark.parametrize(
    ("error", "reason", "words"),
    [
        (certificate(19, "self-signed certificate in chain"), "TlsUntrusted", "external.caSecretRef"),
        (certificate(10, "certificate has expired"), "TlsExpired", "renew it"),
        (certificate(9, "certificate is not yet valid"), "TlsExpired", "not yet valid"),
        (certificate(62, "Hostname mismatch"), "TlsHostname", "external.url"),
        (certificate(64, "IP address mismatch"), "TlsHostname", "external.url"),
        (tls("wrong version number"), "TlsFailed", "wrong version number"),
        (httpx.ConnectError("refused"), "Unreachable", "external.url"),
        (httpx.ConnectTimeout(""), "Unreachable", "ConnectTimeout"),
        (httpx.ReadError("reset"), "ServerGone", "GET /health"),
    ],
)
def test_what_breaks_a_call_to_an_external_server(error: httpx.HTTPError, reason: str, words: str) -> None:
    found = broken("GET /health", ORIGIN, error, external=True)
    assert found.reason == reason
    assert words in str(found)
    assert not found.slow


def test_a_server_of_ours_that_is_gone_stays_a_server_that_is_gone() -> None:
    assert broken("GET /x", ORIGIN, httpx.ConnectError("refused"), external=False).reason == "ServerGone"
    assert broken("GET /x", ORIGIN, httpx.ReadTimeout("late"), external=False).slow


@pytest.mark.parametrize(
    ("status", "text", "reason", "words"),
    [
        (401, '{"error": {"message": "Incorrect API key"}}', "KeyRefused", "external.apiKeySecretRef"),
        (403, "", "KeyRefused", "external.apiKeySecretRef"),
        (401, '{"error": {"message": "Your key has expired."}}', "KeyExpired", "new key"),
        (404, "<html>nothing here</html>", "NotOpenAi", "external.url"),
        (404, '{"detail": "Not Found"}', "NotOpenAi", "without /v1"),
        (405, "", "NotOpenAi", "external.url"),
        (200, "<html>hello</html>", "NotOpenAi", "external.url"),
        (404, '{"error": {"message": "The model `x` does not exist."}}', "ServerMismatch", "model.servedName"),
        (400, '{"error": {"message": "no such thing"}}', "RequestRefused", "no such thing"),
        (200, '{"error": {"message": "it only looks like success"}}', "RequestRefused", "looks like"),
        (503, "busy", "ServerGone", "busy"),
    ],
)
def test_what_an_answer_without_a_choice_means(status: int, text: str, reason: str, words: str) -> None:
    found = refused("POST /v1/completions", status, text, "toy/model")
    assert found.reason == reason
    assert words in str(found)


def test_a_key_that_the_server_repeats_is_not_passed_on() -> None:
    headers = {"Authorization": "Bearer sk-sentinel"}
    assert without_key("wrong key sk-sentinel given", headers) == "wrong key … given"
    assert without_key("nothing to hide", {}) == "nothing to hide"
