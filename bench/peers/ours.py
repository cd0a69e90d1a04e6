"""This project's load client, run and read like its peers: ``python -m bench.peers.ours TASK.json``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
from bench.peers.base import MODEL, PROMPT_TOKENS, Answer, Task

from goodput.analysis.schema.planned import Load
from goodput.runner.contract import PlannedLoad
from goodput.runner.load import spool
from goodput.runner.load.cell import CellNote
from goodput.runner.load.collect import collect
from goodput.runner.load.job import CELL, End, spool_file
from goodput.runner.load.parse import Parsed
from goodput.runner.load.prompts import RandomIds
from goodput.runner.load.responses import Responses
from goodput.runner.load.run import LoadRun, Target

ROOT = Path(__file__).parents[2]
_CELL_FOLDER = "cell"
_TASK = "task.json"


@dataclass(frozen=True)
class Ours:
    """The worker and, after it, the parsing into records: all in one process tree."""

    name: str = "goodput"
    version: str = version("goodput")

    def prepare(self, task: Task) -> list[str]:
        """A closed loop, its window by count: lead-in requests are the first ones."""
        document = {
            "url": task.url,
            "concurrency": task.concurrency,
            "window_requests": max(1, task.requests - task.concurrency),
            "output_tokens": task.output_tokens,
            "drain_seconds": task.timeout_seconds,
        }
        (task.folder / _TASK).write_text(json.dumps(document))
        return [sys.executable, "-m", "bench.peers.ours", _TASK]

    def environment(self) -> Mapping[str, str]:
        """Where the repository is."""
        return {"PYTHONPATH": str(ROOT)}

    def answers(self, task: Task) -> list[Answer]:
        """From the records; single gaps from the parser that makes them."""
        folder = task.folder / _CELL_FOLDER
        start = CellNote.model_validate_json((folder / CELL).read_bytes()).start_monotonic_ns / 1e9
        gaps = {request: _gaps(parsed) for request, parsed in parsed_requests(folder, task.output_tokens)}
        rows = collect(folder).requests.to_pylist()
        return [
            Answer(
                success=row["outcome"] == "completed",
                started=start + row["sent_s"],
                ttft=None if row["first_s"] is None else row["first_s"] - row["sent_s"],
                gaps=gaps.get(row["request"]),
            )
            for row in rows
            if row["sent_s"] is not None
        ]


def parsed_requests(folder: Path, output_tokens: int) -> Iterator[tuple[int, Parsed]]:
    """Every request of one worker's spool, as the parser sees it."""
    end = End.read(folder, 0)
    if end is None:
        raise ValueError("the worker did not come to its end")
    records = spool.read_spool(folder / spool_file(0), end.offset_start_ns)
    yield from Responses(lambda _: output_tokens).take(records)


def _gaps(parsed: Parsed) -> tuple[float, ...] | None:
    if parsed.gaps is None:
        return None
    return tuple((np.repeat(parsed.gaps.each_ns, parsed.gaps.counts) / 1e9).tolist())


def main() -> None:
    """Run one task and make its records."""
    document = json.loads(Path(sys.argv[1]).read_text())
    load = Load(
        prompt_tokens=PROMPT_TOKENS,
        output_tokens=document["output_tokens"],
        arrival="closed",
        concurrency=document["concurrency"],
        window_requests=document["window_requests"],
    )
    plan = PlannedLoad(load=load, seed=1, lead_in_seconds=0, drain_seconds=document["drain_seconds"])
    target = Target.of(document["url"], MODEL, "completions")
    run = LoadRun(plan, target, RandomIds(range(1000, 30_000), 1), Path(_CELL_FOLDER))
    run.start()
    if not run.wait(3600):
        raise SystemExit("the cell does not end")
    run.collect()


if __name__ == "__main__":
    main()
