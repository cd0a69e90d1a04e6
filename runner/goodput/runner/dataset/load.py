"""From a dataset's file to what it holds, with the facts that go into every record."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from goodput.analysis.schema.base import Endpoint
from goodput.analysis.schema.provenance import DatasetFacts
from goodput.runner.contract import DatasetTarget
from goodput.runner.dataset.fetch import fetch
from goodput.runner.dataset.jsonl import parse_jsonl
from goodput.runner.dataset.rows import DatasetError, Rows, Trace
from goodput.runner.dataset.sharegpt import parse_sharegpt
from goodput.runner.dataset.trace import parse_trace


@dataclass(frozen=True)
class Dataset:
    """A file that was read."""

    content: Rows | Trace
    facts: DatasetFacts


def load_dataset(target: DatasetTarget, endpoint: Endpoint) -> Dataset:
    """Read and check the whole file. Raises `DatasetError`."""
    data = fetch(target)
    content: Rows | Trace
    match target.kind:
        case "sharegpt":
            content = parse_sharegpt(data)
        case "jsonl":
            content = parse_jsonl(data, endpoint)
        case _:
            content = parse_trace(data)
    count = len(content.prompt_tokens) if isinstance(content, Trace) else len(content.rows)
    if not count:
        raise DatasetError(target.uri, "has no usable row", "use another file")
    sha256 = hashlib.sha256(data).hexdigest()
    return Dataset(content, DatasetFacts(uri=target.uri, sha256=sha256, rows=count, unusable_rows=content.unusable))
