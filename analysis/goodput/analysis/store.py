"""The object store: one small door to ``s3://``, ``gs://``, ``az://`` and ``file://`` (obstore).

Credentials come from the environment or the pod's identity, never from a document. Creating is conditional
(``If-None-Match``): of two writers of one key exactly one wins.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError, NotFoundError
from obstore.store import AzureStore, GCSStore, LocalStore, ObjectStore, S3Store

SCHEMES = ("s3", "gs", "az", "file")


class StoreError(Exception):
    """The store refused or could not be reached; the message names the operation and the key."""


class Store:
    """A folder in an object store. Keys are relative to it, with ``/`` between the parts."""

    def __init__(
        self, backend: ObjectStore, uri: str, *, endpoint: str | None = None, region: str | None = None
    ) -> None:
        self._backend = backend
        self._endpoint = endpoint
        self._region = region
        self.uri = uri

    def create(self, key: str, data: bytes) -> bool:
        """Write ``key`` unless it exists. True: written; False: it was there already."""
        try:
            obstore.put(self._backend, key, data, mode="create")
        except AlreadyExistsError:
            return False
        except Exception as error:
            raise StoreError(f"creating {self.uri}/{key}: {error}") from error
        return True

    def put(self, key: str, data: bytes) -> None:
        """Write ``key``, replacing what is there."""
        try:
            obstore.put(self._backend, key, data)
        except Exception as error:
            raise StoreError(f"writing {self.uri}/{key}: {error}") from error

    def get(self, key: str) -> bytes | None:
        """The bytes of ``key``, or None where there is none."""
        try:
            return bytes(obstore.get(self._backend, key).bytes())
        except (NotFoundError, FileNotFoundError):
            return None
        except Exception as error:
            raise StoreError(f"reading {self.uri}/{key}: {error}") from error

    def keys(self, prefix: str = "") -> Iterator[str]:
        """All keys below ``prefix`` (a folder), in no order."""
        try:
            for batch in obstore.list(self._backend, prefix=prefix or None):
                for entry in batch:
                    yield entry["path"]
        except Exception as error:
            raise StoreError(f"listing {self.uri}/{prefix}: {error}") from error

    def below(self, folder: str) -> Store:
        """The store of a folder inside this one."""
        return open_store(f"{self.uri}/{folder}", endpoint=self._endpoint, region=self._region)


def open_store(uri: str, *, endpoint: str | None = None, region: str | None = None) -> Store:
    """Open the folder ``uri``. Raises `ValueError` for an unknown scheme, `StoreError` where it cannot be opened."""
    parts = urlsplit(uri)
    if parts.scheme not in SCHEMES:
        raise ValueError(f"results.uri {uri!r}: the scheme must be one of {', '.join(s + '://' for s in SCHEMES)}")
    try:
        backend = _backend(parts.scheme, parts.netloc, parts.path, endpoint, region)
    except Exception as error:
        raise StoreError(f"opening {uri}: {error}") from error
    return Store(backend, uri.rstrip("/"), endpoint=endpoint, region=region)


def _backend(scheme: str, bucket: str, path: str, endpoint: str | None, region: str | None) -> ObjectStore:
    prefix = path.strip("/") or None
    if scheme == "file":
        folder = Path(bucket + path)
        folder.mkdir(parents=True, exist_ok=True)
        return LocalStore(folder)
    if scheme == "gs":
        return GCSStore(bucket, prefix=prefix)
    if scheme == "az":
        return AzureStore(bucket, prefix=prefix)
    if endpoint is None:
        return S3Store(bucket, prefix=prefix, region=region) if region else S3Store(bucket, prefix=prefix)
    return S3Store(
        bucket,
        prefix=prefix,
        endpoint=endpoint,
        region=region or "us-east-1",
        virtual_hosted_style_request=False,
        client_options={"allow_http": True} if endpoint.startswith("http://") else {},
    )
