from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from goodput.runner.contract import DatasetTarget
from goodput.runner.dataset.fetch import download, fetch
from goodput.runner.dataset.rows import DatasetError, DatasetUnreadableError

if TYPE_CHECKING:
    from tests.integration.runner.store.conftest import S3


@pytest.fixture
def target(s3: S3, monkeypatch: pytest.MonkeyPatch) -> DatasetTarget:
    monkeypatch.setattr("goodput.runner.dataset.fetch.RETRY_SECONDS", 1.0)
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    return DatasetTarget(kind="jsonl", uri="s3://bench/data/requests.jsonl", endpoint=s3.endpoint)


def test_a_dataset_comes_from_the_bucket(s3: S3, target: DatasetTarget) -> None:
    s3.objects["data/requests.jsonl"] = b"{}\n"
    assert fetch(target) == b"{}\n"


def test_what_is_missing_or_denied_is_said_with_the_address(s3: S3, target: DatasetTarget) -> None:
    with pytest.raises(DatasetError, match=r"^s3://bench/data/requests\.jsonl: does not exist; check"):
        fetch(target)
    s3.mode = "denied"
    with pytest.raises(DatasetUnreadableError, match="cannot be read") as refused:
        fetch(target)
    assert "AKIATESTONLY" not in str(refused.value)


def test_a_dataset_comes_over_http(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address's scheme is all that https adds; certificates are the HTTP client's own matter."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    s3.objects["data/r 1.jsonl"] = b"{}\n"
    assert download(f"{s3.endpoint}/bench/data/r%201.jsonl") == b"{}\n"
    assert download(f"{s3.endpoint}/bench/data/none.jsonl") is None
    s3.mode = "unavailable"
    with pytest.raises(httpx.HTTPStatusError):
        download(f"{s3.endpoint}/bench/data/none.jsonl")
