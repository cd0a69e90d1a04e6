"""A cell that is repeated is read like one that was recorded so long."""

from __future__ import annotations

from pathlib import Path

from bench.soak.replicate import replicate

from goodput.analysis.schema.planned import Load
from goodput.runner.contract import PlannedLoad
from goodput.runner.load.ceiling import sink
from goodput.runner.load.collect import collect
from goodput.runner.load.prompts import RandomIds
from goodput.runner.load.run import LoadRun, Target

COPIES = 3


def test_copies_hold_the_same_requests_later(tmp_path: Path) -> None:
    load = Load(prompt_tokens=16, output_tokens=5, arrival="closed", concurrency=4, window_seconds=0.5)
    plan = PlannedLoad(load=load, seed=1, lead_in_seconds=0, drain_seconds=10)
    with sink(0.01) as port:
        target = Target.of(f"http://127.0.0.1:{port}", "sink", "completions")
        run = LoadRun(plan, target, RandomIds(range(1000), 1), tmp_path / "once")
        run.start()
        assert run.wait(30)
        once = run.collect()
    replicate(tmp_path / "once", tmp_path / "often", COPIES)
    often = collect(tmp_path / "often")

    rows, copies = once.requests.to_pylist(), often.requests.to_pylist()
    assert len(copies) == COPIES * len(rows)
    assert often.client.events == COPIES * once.client.events
    lead_in = sum(row["planned_s"] < once.window.opened for row in rows)
    assert [row["in_window"] for row in copies] == [False] * lead_in + [True] * (len(copies) - lead_in)
    for number, copy in enumerate(copies):
        row = rows[number % len(rows)]
        assert copy["outcome"] == row["outcome"]
        assert copy["output_tokens"] == row["output_tokens"]
        assert copy["request"] == number
        if row["first_s"] is not None:
            ttft, of_copy = row["first_s"] - row["sent_s"], copy["first_s"] - copy["sent_s"]
            assert abs(of_copy - ttft) < 1e-6
    starts = [copies[k * len(rows)]["sent_s"] for k in range(COPIES)]
    assert starts == sorted(starts)
