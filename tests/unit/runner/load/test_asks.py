from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from goodput.analysis.schema.base import Endpoint
from goodput.analysis.schema.planned import Load
from goodput.runner.contract import PlannedLoad
from goodput.runner.load.asks import Asks
from goodput.runner.load.bodies import Entry
from goodput.runner.load.cell import Asked, CellNote
from goodput.runner.load.job import ENTRIES

PREPARED = 3  # requests in the file; each prompt has 100 tokens, and the first of them nothing before it


def asked(folder: Path, sent: int, endpoint: Endpoint = "completions", **load: Any) -> Asked:
    """Of a closed loop that sent so many requests."""
    entries = [Entry(0, 1, 1, 100, 4, shared) for shared in (0, 0, 32)]
    (folder / ENTRIES).write_bytes(b"".join(entry.pack() for entry in entries))
    shape = {"arrival": "closed", "concurrency": 1, "window_requests": 8, **load}
    plan = PlannedLoad(load=Load.model_validate(shape), seed=1, lead_in_seconds=0, drain_seconds=1)
    note = CellNote(
        plan=plan,
        endpoint=endpoint,
        start_monotonic_ns=0,
        started_unix=0.0,
        schedule_sha256="",
        prompts_sha256="",
    )
    times = [float(number) for number in range(sent)]
    requests = pa.table({"request": list(range(sent)), "planned_s": times, "sent_s": times, "in_window": [True] * sent})
    return Asks.read(folder, 0).summary(requests, 1000.0, note)


def test_what_comes_again_finds_its_groups_prefix(tmp_path: Path) -> None:
    """The first of a group missed; its body with other ids behind the prefix does not."""
    found = asked(tmp_path, 8, prompt_tokens=100, output_tokens=4, prefix_groups=2, prefix_tokens=40)
    assert found.shared == {0: 2, 32: 6}
    assert found.repeated == 0


def test_a_chat_of_a_dataset_that_comes_again_is_known_to_its_last_block(tmp_path: Path) -> None:
    found = asked(tmp_path, 5, "chat", dataset="sharegpt", dataset_uri="file://x", max_tokens=200)
    assert found.shared == {0: 2, 32: 1, 96: 2}
    assert found.repeated == 2


def test_rows_that_come_again_are_counted_though_the_dataset_had_more(tmp_path: Path) -> None:
    found = asked(tmp_path, 7, dataset="jsonl", dataset_uri="file://x", max_tokens=200)
    assert found.repeated == 4


def test_random_prompts_that_come_again_are_new_ones(tmp_path: Path) -> None:
    found = asked(tmp_path, 7, prompt_tokens=100, output_tokens=4)
    assert found.repeated == 0


def test_a_random_chat_that_comes_again_shares_the_templates_head_and_its_first_word(tmp_path: Path) -> None:
    found = asked(tmp_path, 5, "chat", prompt_tokens=100, output_tokens=4)
    assert found.shared == {0: 2, 32: 1, 33: 2}
    assert found.repeated == 0
