"""Reads a dataset's file from wherever it is."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote, urlsplit

import obstore
from obstore.store import HTTPStore

from goodput.analysis.store import StoreError, open_store
from goodput.runner.contract import DatasetTarget
from goodput.runner.dataset.rows import DatasetError

RETRY_SECONDS = 60.0
_FIX = "check spec.workload.datasetUri and the credentials of the results"


def fetch(target: DatasetTarget) -> bytes:
    """The file's bytes. Raises `DatasetError` where it cannot be read."""
    try:
        data = _read(target)
    except (OSError, StoreError) as error:
        raise DatasetError(target.uri, f"cannot be read: {error}", _FIX) from error
    if data is None:
        raise DatasetError(target.uri, "does not exist", _FIX)
    return data


def _read(target: DatasetTarget) -> bytes | None:
    parts = urlsplit(target.uri)
    if parts.scheme == "file":
        path = Path(parts.netloc + unquote(parts.path))
        return path.read_bytes() if path.exists() else None
    folder, _, name = parts.path.rpartition("/")
    place = f"{parts.scheme}://{parts.netloc}{folder}"
    if parts.scheme == "https":
        return _over_http(place, unquote(name), target.uri)
    store = open_store(place, endpoint=target.endpoint, region=target.region, retry_seconds=RETRY_SECONDS)
    return store.get(name)


def _over_http(place: str, name: str, uri: str) -> bytes | None:
    try:
        store = HTTPStore.from_url(
            f"{place}/",
            client_options={"timeout": timedelta(seconds=600), "connect_timeout": timedelta(seconds=30)},
            retry_config={"max_retries": 3, "retry_timeout": timedelta(seconds=RETRY_SECONDS)},
        )
        return bytes(obstore.get(store, name).bytes())
    except FileNotFoundError:
        return None
    except Exception as error:
        raise StoreError(f"reading {uri}", error) from error
