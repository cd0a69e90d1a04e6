"""Reads a dataset's file from wherever it is."""

from __future__ import annotations

from urllib.parse import urlsplit

import httpx

from goodput.analysis.store import StoreError, open_store
from goodput.analysis.uri import file_path
from goodput.runner.contract import DatasetTarget
from goodput.runner.dataset.rows import DatasetError, DatasetUnreadableError

RETRY_SECONDS = 60.0
_FIX = "check spec.workload.datasetUri and the credentials of the results"


def fetch(target: DatasetTarget) -> bytes:
    """The file's bytes.

    Raises:
        DatasetError: there is no such file.
        DatasetUnreadableError: it could not be read now.
    """
    try:
        data = _read(target)
    except (OSError, StoreError, httpx.HTTPError) as error:
        raise DatasetUnreadableError(f"{target.uri}: cannot be read: {error}; {_FIX}") from error
    if data is None:
        raise DatasetError(target.uri, "does not exist", _FIX)
    return data


def _read(target: DatasetTarget) -> bytes | None:
    path = file_path(target.uri)
    if path is not None:
        return path.read_bytes() if path.exists() else None
    parts = urlsplit(target.uri)
    if parts.scheme == "https":
        return download(target.uri)
    folder, _, name = parts.path.rpartition("/")
    place = f"{parts.scheme}://{parts.netloc}{folder}"
    store = open_store(place, endpoint=target.endpoint, region=target.region, retry_seconds=RETRY_SECONDS)
    return store.get(name)


def download(url: str) -> bytes | None:
    """The body behind a URL, redirects followed; None where there is none. Raises `httpx.HTTPError`."""
    answer = httpx.get(url, follow_redirects=True, timeout=RETRY_SECONDS)
    if answer.status_code in (404, 410):
        return None
    return answer.raise_for_status().content
