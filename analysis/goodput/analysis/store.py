"""The object store: one small door to ``s3://``, ``gs://``, ``az://`` and ``file://`` (obstore).

Credentials come from the environment or the pod's identity, never from a document. Creating is conditional
(``If-None-Match``): of two writers of one key exactly one wins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError, NotFoundError
from obstore.store import AzureStore, GCSStore, LocalStore, ObjectStore, S3Store

from goodput.analysis.uri import file_path

SCHEMES = ("s3", "gs", "az", "file")

StoreReason = Literal["UploadDenied", "NoSuchBucket", "StoreUnreachable"]
_DENIED = re.compile(r"status code: 40[13]\b|Permission denied|Read-only file system")
_NO_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|status code: 404\b")


class StoreError(Exception):
    """The store refused or could not be reached; the message names the operation and the key.

    ``reason``: UploadDenied (401, 403, file permissions), NoSuchBucket, else StoreUnreachable. Of an answer's
    body the message keeps the error code alone: stores echo access key ids.
    """

    def __init__(self, operation: str, error: Exception) -> None:
        self.reason = reason_of(error)
        super().__init__(f"{operation}: {_plain(error)}")


def reason_of(error: Exception) -> StoreReason:
    """Which kind of refusal an exception of the client is."""
    text = str(error)
    if isinstance(error, PermissionError) or _DENIED.search(text):
        return "UploadDenied"
    if isinstance(error, FileNotFoundError) or _NO_BUCKET.search(text):
        return "NoSuchBucket"
    return "StoreUnreachable"


def _plain(error: Exception) -> str:
    first = str(error).split("\n\nDebug source", 1)[0]
    head, bracket, body = first.partition("<")
    code = re.search(r"<Code>(\w+)</Code>", bracket + body)
    return (head + (code[1] if code else "")).strip()


class Store:
    """A folder in an object store. Keys are relative to it, with ``/`` between the parts."""

    def __init__(self, backend: ObjectStore, uri: str, **options: Any) -> None:
        self._backend = backend
        self._options = options  # of `open_store`, for folders inside this one
        self.uri = uri

    def create(self, key: str, data: bytes) -> bool:
        """Write ``key`` unless it exists. True: written; False: it was there already."""
        try:
            obstore.put(self._backend, key, data, mode="create")
        except AlreadyExistsError:
            return False
        except Exception as error:
            raise StoreError(f"creating {self.uri}/{key}", error) from error
        return True

    def put(self, key: str, data: bytes) -> None:
        """Write ``key``, replacing what is there."""
        try:
            obstore.put(self._backend, key, data)
        except Exception as error:
            raise StoreError(f"writing {self.uri}/{key}", error) from error

    def get(self, key: str) -> bytes | None:
        """The bytes of ``key``, or None where there is none."""
        try:
            return bytes(obstore.get(self._backend, key).bytes())
        except (NotFoundError, FileNotFoundError):
            return None
        except Exception as error:
            raise StoreError(f"reading {self.uri}/{key}", error) from error

    def keys(self, prefix: str = "") -> Iterator[str]:
        """All keys below ``prefix`` (a folder), in no order."""
        try:
            for batch in obstore.list(self._backend, prefix=prefix or None):
                for entry in batch:
                    yield entry["path"]
        except Exception as error:
            raise StoreError(f"listing {self.uri}/{prefix}", error) from error

    def delete(self) -> None:
        """Delete all keys."""
        keys = list(self.keys())
        try:
            obstore.delete(self._backend, keys)
        except Exception as error:
            raise StoreError(f"deleting what lies in {self.uri}", error) from error

    def below(self, folder: str) -> Store:
        """The store of a folder inside this one."""
        return open_store(f"{self.uri}/{folder}", **self._options)


def open_store(
    uri: str, *, endpoint: str | None = None, region: str | None = None, retry_seconds: float | None = None
) -> Store:
    """Open the folder ``uri``.

    Args:
        uri: ``s3://bucket/folder`` and the like.
        endpoint: of an S3-compatible server.
        region: of the bucket.
        retry_seconds: how long a call retries by itself before it raises; None: the client's own default
            (minutes). Also bounds connecting and each answer.

    Raises:
        ValueError: unknown scheme.
        StoreError: it cannot be opened.
    """
    if uri.partition("://")[0] not in SCHEMES:
        raise ValueError(f"results.uri {uri!r}: the scheme must be one of {', '.join(s + '://' for s in SCHEMES)}")
    try:
        options = _client_options(endpoint, retry_seconds)
        if endpoint is not None or region is not None:
            options["region"] = region or "us-east-1"
        folder = file_path(uri)
        backend = _bucket(uri, endpoint, options) if folder is None else _folder(folder)
    except Exception as error:
        raise StoreError(f"opening {uri}", error) from error
    return Store(backend, uri.rstrip("/"), endpoint=endpoint, region=region, retry_seconds=retry_seconds)


def _folder(folder: Path) -> ObjectStore:
    folder.mkdir(parents=True, exist_ok=True)
    return LocalStore(folder)


def _bucket(uri: str, endpoint: str | None, options: dict[str, Any]) -> ObjectStore:
    parts = urlsplit(uri)
    scheme, bucket, prefix = parts.scheme, parts.netloc, parts.path.strip("/") or None
    if scheme == "s3":
        if endpoint is not None:
            options = {**options, "endpoint": endpoint, "virtual_hosted_style_request": False}
        return S3Store(bucket, prefix=prefix, **options)
    options = {key: value for key, value in options.items() if key != "region"}
    return (
        GCSStore(bucket, prefix=prefix, **options) if scheme == "gs" else AzureStore(bucket, prefix=prefix, **options)
    )


def _client_options(endpoint: str | None, retry_seconds: float | None) -> dict[str, Any]:
    client: dict[str, Any] = {"allow_http": True} if (endpoint or "").startswith("http://") else {}
    if retry_seconds is None:
        return {"client_options": client} if client else {}
    client |= {"connect_timeout": timedelta(seconds=retry_seconds), "timeout": timedelta(seconds=120)}
    retry = {
        "max_retries": 2,
        "retry_timeout": timedelta(seconds=retry_seconds),
        "backoff": {
            "init_backoff": timedelta(milliseconds=100),
            "max_backoff": timedelta(seconds=1),
            "base": 2,
        },
    }
    return {"client_options": client, "retry_config": retry}
