import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from bench.engines.devices import LLAMA_2_7B, LLAMA_3_8B, RTX_4090
from bench.engines.profiles import efficiency, roofline_costs
from bench.engines.replay import compare
from bench.engines.runs import Times, read_run, replay
from bench.engines.streams import STEP_SECONDS, jitter

from goodput.analysis.schema.cell import LogHistogram
from goodput.engines.calibration.fit import DenseFit
from goodput.engines.simulated.profile import RooflineProfile, load_profile


def recorded(folder: Path, *, blocks: int) -> Path:
    """A run of three requests as LLMServingSim writes it, on clocks that begin elsewhere."""
    meta = {
        "engine_kwargs": {"model": "m", "max_num_seqs": 4, "max_num_batched_tokens": 64, "max_model_len": 256},
        "kv_cache": {"num_gpu_blocks": blocks, "block_size": 16},
    }
    rows = [
        {
            "request_id": f"bench-{number}",
            "input_toks": 40,
            "output_toks": 80,
            "arrival_time": 1e9 + number,
            "queued_ts": 500.0 + number,
            "scheduled_ts": 500.0 + number,
            "first_token_ts": 500.5 + number,
            "last_token_ts": 504.45 + number,
        }
        for number in range(3)
    ]
    folder.mkdir(parents=True)
    (folder / "meta.json").write_text(json.dumps(meta))
    (folder / "requests.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    samples = ["t,running,waiting,kv_cache_pct", "1.5,2,0,60.0", "2.5,2,1,100.0", "3.5,3,0,80.0", "5.5,1,0,30.0"]
    (folder / "timeseries.csv").write_text("\n".join(samples) + "\n")
    return folder


def test_a_recorded_run_is_told_from_its_first_request(tmp_path: Path) -> None:
    run = read_run(recorded(tmp_path / "GPU/Model/vllm", blocks=100))
    assert run.name == "GPU Model"
    assert run.arrivals.tolist() == [0, 1, 2]
    assert (run.measured.ttft, run.measured.tpot, run.measured.e2e) == pytest.approx((0.5, 0.05, 4.45))
    assert run.most_kv_used == 1.0
    assert run.measured.net_preemptions == 1, "at 2.5 s three were admitted, none had ended, and two were running"
    config = run.config(load_profile("teaching"))
    assert (config.scheduler.max_num_batched_tokens, config.cache.num_gpu_blocks) == (64, 100)


def test_a_replayed_run_is_served_in_full_and_counts_its_preemptions(tmp_path: Path) -> None:
    run = read_run(recorded(tmp_path / "GPU/Model/vllm", blocks=11))
    profile = load_profile("teaching")
    roomy = replay(read_run(recorded(tmp_path / "GPU/Other/vllm", blocks=100)), profile)
    tight = replay(run, profile)
    assert roomy.preemptions == 0
    assert tight.preemptions
    assert tight.e2e > roomy.e2e
    assert (tight.last > tight.first).all()


def times(**changes: Any) -> Times:
    one = np.array([1.0, 2.0])
    values: dict[str, Any] = {
        "queued": one - 1,
        "first": one,
        "last": one + 1,
        "output_tokens": one * 0 + 11,
        "preemptions": 100,
    }
    return Times(**values | {"tick_s": one, "pending": np.array([10.0, 30.0])} | changes)


@pytest.mark.parametrize(
    ("simulated", "stated", "good"),
    [
        (times(), 100, True),
        (times(last=np.array([2.25, 3.25])), None, False),  # TPOT 25 % off
        (times(preemptions=70), 100, False),
        (times(pending=np.array([10.0, 20.0])), None, False),
    ],
)
def test_a_replay_is_within_its_aims_or_is_said_to_miss(simulated: Times, stated: int | None, good: bool) -> None:
    run: Any = SimpleNamespace(measured=times(preemptions=None), most_kv_used=1.0)
    assert compare(run, simulated, stated) is good


def test_a_run_whose_cache_does_not_fill_must_preempt_nobody() -> None:
    run: Any = SimpleNamespace(measured=times(), most_kv_used=0.4)
    assert compare(run, times(preemptions=0), None)
    assert not compare(run, times(preemptions=3), None)


def test_what_a_table_reaches_of_a_data_sheet_gives_the_table_back() -> None:
    costs = rtx_4090().step
    share = efficiency(RTX_4090, costs, head_seconds=1.2e-3)
    dense = DenseFit(costs.weights_seconds, costs.per_token_seconds, costs.blend_exponent, 0.0)
    again = roofline_costs(RTX_4090, dense, share, costs)
    assert again.model_dump(exclude={"overhead_seconds"}) == pytest.approx(
        costs.model_dump(exclude={"overhead_seconds"})
    )
    assert again.overhead_seconds == pytest.approx(1.2e-3)


def test_shapes_have_the_parameters_that_the_models_say() -> None:
    assert LLAMA_3_8B.weights_bytes / 2 == pytest.approx(8.03e9, rel=0.001)
    assert LLAMA_2_7B.weights_bytes / 2 == pytest.approx(6.74e9, rel=0.001)
    assert LLAMA_3_8B.kv_bytes_per_token == 131072


def test_jitter_is_the_distance_from_the_step_at_its_worst_in_each_bucket() -> None:
    on_time = next(bucket for bucket in range(-400, 0) if 1.01 ** (bucket + 1) > STEP_SECONDS)
    cell: Any = SimpleNamespace(itl=LogHistogram(counts={on_time: 90, on_time + 20: 10}))
    assert jitter(cell, 0.9) < 0.01 * STEP_SECONDS
    assert jitter(cell, 0.99) == pytest.approx(1.01 ** (on_time + 21) - STEP_SECONDS)


def rtx_4090() -> RooflineProfile:
    profile = load_profile("rtx-4090-llama-3.1-8b")
    assert isinstance(profile, RooflineProfile)
    return profile
