from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
import yaml
from tests.integration.analysis.conftest import Model

from goodput.analysis.analyze import changed_slo, run_analysis
from goodput.analysis.answer import answer
from goodput.analysis.columns import FIXED
from goodput.analysis.schema.planned import Slo
from goodput.analysis.schema.provenance import DatasetFacts, Provenance
from goodput.analysis.schema.server import RequestTally, ServerColumns, ServerHistogram
from goodput.analysis.schema.sweep import CellWithoutResult
from goodput.analysis.store import Store, open_store
from goodput.analysis.text_table import format_table

Builder = Any  # SweepBuilder of conftest.py
Toy = Callable[..., Any]


def table(store: Store, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(io.BytesIO(fetched(store, f"tables/{name}.parquet"))).to_pylist()
    return rows


def fetched(store: Store, key: str) -> bytes:
    data = store.get(key)
    assert data is not None, key
    return data


def test_the_middle_budget_wins_and_everything_is_written(sweep: Builder, store: Store, toy: Toy) -> None:
    sweep.fill(toy)
    result = run_analysis(store, sweep.states(final=True))
    best = sweep.configs[1]
    assert result.decision.best == best.id
    assert result.decision.verdict in {"winner", "undecided"}
    document = yaml.safe_load(fetched(store, "best.yaml"))
    assert document["evidence"] == "synthetic"
    assert document["best"]["flags"] == {"max-model-len": 8192, "max-num-batched-tokens": 2048}
    assert document["best"]["command"] == "goodput-engine-simulated --max-num-batched-tokens 2048"
    assert document["sweep"]["folder"] == "default.toy.01234567"
    assert b"SYNTHETIC" in fetched(store, "report.html")
    assert sorted(key for key in store.keys("tables")) == sorted(
        f"tables/{name}.{kind}" for name in ("goodput", "configs", "cells") for kind in ("parquet", "csv")
    )


def test_goodput_rows_agree_with_the_records(sweep: Builder, store: Store, toy: Toy) -> None:
    sweep.fill(toy)
    run_analysis(store, sweep.states())
    rows, cells = table(store, "goodput"), table(store, "cells")
    assert set(rows[0]) == {*FIXED, "v", "evidence", "max_num_batched_tokens"}
    assert [row["max_num_batched_tokens"] for row in rows] == [512, 512, 2048, 2048, 8192, 8192]
    for row in rows:
        blocks = [cell for cell in cells if (cell["config"], cell["load"]) == (row["config"], row["load"])]
        good, attempted = (sum(cell[name] for cell in blocks) for name in ("good", "attempted"))
        assert (row["good"], row["attempted"], row["blocks"]) == (good, attempted, 3)
        assert attempted == sum(row[name] for name in ("good", "slow", "failed", "incomplete", "not_sent"))
        assert row["goodput_per_second"] == pytest.approx(good / 20 / 3)
        assert row["attainment_ratio"] == pytest.approx(good / attempted)
        p95 = "scheduled_ttft_p95_seconds"
        assert row[p95] == pytest.approx(sum(cell[p95] for cell in blocks) / 3)
        assert row["goodput_low_per_second"] <= row["goodput_per_second"] <= row["goodput_high_per_second"]
        assert row["scheduled_ttft_p99_small_sample"]  # 40 to 80 requests
        assert not row["scheduled_ttft_p50_small_sample"]
        assert row["gpu_seconds"] == 3 * 25.0
        assert row["preemptions"] == 9


def test_nothing_is_written_as_zero_that_is_not_known(sweep: Builder, store: Store) -> None:
    sweep.write_spec()
    unknown = {"server": None, "itl": None, "delivered_output_tokens": None, "client": None}
    sweep.cell(sweep.configs[0], sweep.loads[0], "0", **unknown)
    run_analysis(store)
    rows = table(store, "goodput")
    measured, empty = rows[0], rows[-1]
    for column in ("preemptions", "itl_p50_seconds", "output_tokens_per_second", "goodput_low_per_second"):
        assert measured[column] is None, column
    assert (measured["blocks"], empty["blocks"]) == (1, 0)
    for column in ("attempted", "good", "goodput_per_second", "attainment_ratio", "ttft_p50_seconds", "load_state"):
        assert empty[column] is None, column
    assert empty["verdict"] == "not_measured"


def test_csv_says_what_parquet_says(sweep: Builder, store: Store, toy: Toy) -> None:
    sweep.fill(toy)
    run_analysis(store, sweep.states())
    for name in ("goodput", "configs", "cells"):
        parquet = pq.read_table(io.BytesIO(fetched(store, f"tables/{name}.parquet")))
        csv = pc.read_csv(
            io.BytesIO(fetched(store, f"tables/{name}.csv")),
            convert_options=pc.ConvertOptions(
                column_types=dict(zip(parquet.schema.names, parquet.schema.types, strict=True)),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        assert csv.to_pylist() == parquet.to_pylist()


def test_every_planned_cell_has_a_row_with_state_and_reason(sweep: Builder, store: Store) -> None:
    small, middle, large = sweep.configs
    low, high = sweep.loads
    sweep.write_spec()
    for block in sweep.blocks:
        sweep.cell(small, low, block)
    sweep.cell(small, high, "0", outcome="void", reason="ServerGone")
    sweep.cell(small, high, "1", outcome="void", reason="NotIdle")
    sweep.cell(small, high, "1", attempt=2)
    told = [
        CellWithoutResult(config=middle.id, load=load.id, block=block, state="failed", reason="CudaOutOfMemory")
        for load in sweep.loads
        for block in sweep.blocks
    ]
    told += [
        CellWithoutResult(config=large.id, load=load.id, block=block, state="pruned", reason="PrunedBy:" + middle.id)
        for load in sweep.loads
        for block in sweep.blocks
    ]
    run_analysis(store, sweep.states(cells=tuple(told)))
    cells = {(cell["config"], cell["load"], cell["block"]): cell for cell in table(store, "cells")}

    def state(config: Any, load: Any, block: str) -> tuple[str, str | None]:
        cell = cells[config.id, load.id, block]
        return cell["state"], cell["reason"]

    assert len(cells) == 3 * 2 * 3
    assert state(small, low, "0") == ("measured", None)
    assert state(small, high, "0") == ("void", "ServerGone")
    assert state(small, high, "1") == ("measured", None)
    retried = cells[small.id, high.id, "1"]
    assert (retried["attempt"], retried["void_attempts"]) == (2, 1)
    assert state(small, high, "2") == ("not_run", "NotReached")
    assert state(middle, low, "0") == ("failed", "CudaOutOfMemory")
    assert state(large, high, "2") == ("pruned", f"PrunedBy:{middle.id}")
    page = fetched(store, "report.html").decode()
    assert "CudaOutOfMemory" in page
    assert "PrunedBy:" in page


def test_rebuilding_gives_the_same_bytes(sweep: Builder, store: Store, toy: Toy) -> None:
    sweep.fill(toy)
    run_analysis(store, sweep.states())
    keys = [*store.keys("tables"), "report.html", "best.yaml"]
    before = {key: fetched(store, key) for key in keys}
    run_analysis(store)
    assert {key: fetched(store, key) for key in keys} == before


def test_an_older_generation_does_not_replace_states(sweep: Builder, store: Store) -> None:
    sweep.write_spec()
    later = sweep.states(generation=5)
    run_analysis(store, later)
    assert run_analysis(store, sweep.states(generation=4)).states == later
    assert fetched(store, "states.json") == later.to_json()
    newer = sweep.states(generation=6)
    run_analysis(store, newer)
    assert fetched(store, "states.json") == newer.to_json()


def test_another_slo_goes_to_its_own_folder(sweep: Builder, store: Store, toy: Toy) -> None:
    sweep.fill(toy)
    run_analysis(store, sweep.states())
    before = fetched(store, "tables/goodput.csv")
    result = run_analysis(store, slo=changed_slo(store, tpot=0.1))
    assert result.slo == Slo(ttft=0.5, tpot=0.1)
    assert result.decision.best == sweep.configs[2].id  # only the loss in TPOT spoke against it
    assert fetched(store, "tables/goodput.csv") == before
    [folder] = {key.rsplit("/", 1)[0] for key in store.keys("tables") if "slo=" in key}
    assert {key.rsplit("/", 1)[1] for key in store.keys(folder)} >= {"goodput.csv", "report.html", "best.yaml"}


def test_sentinel_cells_are_rows_and_are_not_pooled(sweep: Builder, store: Store, toy: Toy) -> None:
    sweep.sentinels = ("s00", "s01")
    sweep.fill(toy)
    result = run_analysis(store, sweep.states())
    cells = table(store, "cells")
    assert sum(cell["sentinel"] for cell in cells) == 2 * 2
    assert {row["blocks"] for row in table(store, "goodput")} == {3}
    assert result.decision.drift is not None


def test_a_sentinel_that_moves_gives_drift(sweep: Builder, store: Store, toy: Toy) -> None:
    sweep.sentinels = ("s00", "s01", "s02", "s03")

    def warming(config: Any, load: Any, block: str) -> Any:
        model = toy(config, load, block)
        if block.startswith("s"):
            model.ttft = 0.35 + 0.05 * int(block[1:])  # near the limit: each is slower than the last
        return model

    sweep.fill(warming)
    assert run_analysis(store, sweep.states()).decision.verdict == "drift"


def test_there_is_no_winner_where_the_dataset_changed(sweep: Builder, store: Store, toy: Toy) -> None:
    def decision(versions: int) -> Any:
        """Of a sweep whose blocks read so many versions of the file."""
        other = open_store(f"{store.uri}-{versions}")
        again = replace(sweep, store=other)
        again.write_spec()
        for config in again.configs:
            for load in again.loads:
                for block in again.blocks:
                    facts = DatasetFacts(
                        uri="s3://b/x", sha256="ab" * 31 + f"{int(block) % versions:02}", rows=9, unusable_rows=0
                    )
                    found = Provenance(model="toy/model", dataset=facts)
                    again.cell(config, load, block, toy(config, load, block), provenance=found)
        return run_analysis(other, again.states()).decision

    assert decision(1).reason != "DatasetChanged"
    assert (decision(2).verdict, decision(2).reason) == ("undecided", "DatasetChanged")


def test_closed_loop_is_judged_from_the_actual_send(sweep: Builder, store: Store, toy: Toy) -> None:
    sweep.arrival, sweep.rates = "closed", (2.0, 4.0)
    sweep.fill(toy)
    result = run_analysis(store, sweep.states())
    rows = table(store, "goodput")
    assert {row["concurrency"] for row in rows} == {2, 4}
    assert {row["load_state"] for row in rows} == {"not_judged"}
    assert {row["request_rate_per_second"] for row in rows} == {None}
    assert "× 4" in format_table(result)


def test_measured_evidence_is_not_marked_synthetic(sweep: Builder, store: Store, toy: Toy) -> None:
    sweep.evidence = "measured"
    sweep.fill(toy)
    result = run_analysis(store, sweep.states())
    assert b"SYNTHETIC" not in fetched(store, "report.html")
    assert "SYNTHETIC" not in format_table(result)
    assert {row["evidence"] for row in table(store, "goodput")} == {"measured"}


def test_nothing_measured_yet_is_a_report_too(sweep: Builder, store: Store) -> None:
    sweep.write_spec()
    result = run_analysis(store, sweep.states())
    assert (result.decision.verdict, result.decision.reason) == ("infeasible", "NothingMeasured")
    assert yaml.safe_load(fetched(store, "best.yaml"))["best"] is None
    assert "no valid cell" in format_table(result)
    assert {cell["state"] for cell in table(store, "cells")} == {"not_run"}


def test_a_load_point_without_a_valid_cell_says_why(sweep: Builder, store: Store) -> None:
    sweep.write_spec()
    config, (slow, fast) = sweep.configs[0], sweep.loads
    failed = [
        CellWithoutResult(config=config.id, load=slow.id, block=block, state="failed", reason="RequestsTooLong")
        for block in sweep.blocks
    ]
    late = CellWithoutResult(config=config.id, load=fast.id, block="0", state="not_run", reason="BudgetSpent")
    result = run_analysis(store, sweep.states(cells=(*failed, late)))
    reasons = {(row["config"], row["load"]): row["failure_reason"] for row in table(store, "goodput")}
    assert reasons[config.id, slow.id] == "RequestsTooLong"
    assert format_table(result).count("no valid cell: RequestsTooLong") == 1
    assert fetched(store, "report.html").decode().count("no valid cell: RequestsTooLong") == 1


@pytest.mark.parametrize("arrival", ["poisson", "closed"])
def test_cells_without_a_completed_request_do_not_look_healthy_anywhere(
    sweep: Builder, store: Store, arrival: str
) -> None:
    sweep.arrival = arrival
    sweep.fill(lambda *_: Model(refused=1))
    result = run_analysis(store, sweep.states())
    assert {row["failure_reason"] for name in ("goodput", "cells") for row in table(store, name)} == {"Http400"}
    assert {row["load_state"] for name in ("goodput", "cells") for row in table(store, name)} == {"not_judged"}
    told = "No request of any config completed, most often: Http400."
    assert (result.decision.verdict, answer(result).message) == ("infeasible", told)
    text = format_table(result)
    assert text.count("no request completed: Http400") == 6
    assert text.endswith(f"\n{told}")
    report = fetched(store, "report.html").decode()
    assert report.count("no request completed: Http400") == 6
    assert told in report
    assert "stable" not in text + report


def test_what_dominates_is_named_and_what_is_rare_is_not(sweep: Builder, store: Store) -> None:
    shares = dict(zip((512, 2048, 8192), (0.0, 0.2, 1.0), strict=True))
    sweep.fill(lambda config, *_: Model(refused=shares[int(config.flags["max_num_batched_tokens"])]))
    result = run_analysis(store, sweep.states())
    states = format_table(result).splitlines()[4:10]
    assert [state.endswith(" stable") for state in states] == [True, True, False, False, False, False]
    assert all("stable, " in state and state.endswith(" % not completed: Http400") for state in states[2:4])
    assert all(state.endswith("  no request completed: Http400") for state in states[4:])
    assert result.decision.best == sweep.configs[0].id
    assert (
        "Most requests of 2 of 6 pairs of config and load did not complete, most often: Http400."
        in answer(result).message
    )


def test_the_terminal_table_names_leader_verdict_and_evidence(sweep: Builder, store: Store, toy: Toy) -> None:
    sweep.fill(toy)
    text = format_table(run_analysis(store, sweep.states()))
    assert "SYNTHETIC" in text
    assert "* max_num_batched_tokens=2048" in text
    last = text.splitlines()[-2:]
    assert last[0].startswith("max_num_batched_tokens=2048: ")
    assert last[1].strip()


def test_several_engines_are_a_column_of_the_tables(sweep: Builder, store: Store, toy: Toy) -> None:
    one = sweep.configs[0]
    other = one.model_copy(update={"engine": "baseline", "kind": "transformers", "swept": {}, "flags": {}})
    sweep.spec_over = {"configs": [*sweep.configs, other]}
    sweep.fill(toy)
    text = format_table(run_analysis(store, sweep.states()))
    header, *lines = [line for line in text.splitlines() if "2048→64 @ 2/s" in line or "goodput/s" in line]
    assert header.split()[:3] == ["engine", "config", "load"]
    assert [line.lstrip("* ").split()[:2] for line in lines] == [
        *(["sim", f"max_num_batched_tokens={budget}"] for budget in (512, 2048, 8192)),
        ["baseline", "–"],
    ]
    page = fetched(store, "report.html").decode()
    assert '<th class="text">engine</th><th class="text">config</th>' in page
    assert '<td class="text">baseline</td><td class="text name">–</td>' in page


def test_server_and_client_columns_and_the_warning_where_their_counts_differ(sweep: Builder, store: Store) -> None:
    histograms = {
        "ttft": ServerHistogram(edges=(0.25, 0.5), counts=(60, 30, 10), total=30.0),
        "tpot": ServerHistogram(edges=(0.01, 0.025), counts=(100, 0, 0), total=1.0),
    }
    server = ServerColumns(
        complete=True,
        samples=20,
        requests_finished={"length": 99.0, "abort": 1.0},
        requests_client=RequestTally(finished=101, other=2),
        counts_agree=False,
        histograms=histograms,
    )
    warning = "CountsDiffer: the server counts 99 length, 1 abort, the client 101 finished, 2 otherwise"
    sweep.write_spec()
    sweep.cell(sweep.configs[0], sweep.loads[0], "0", server=server, warnings=(warning,))
    sweep.cell(sweep.configs[0], sweep.loads[0], "1", server=None)
    run_analysis(store, sweep.states())
    first, second, *_ = table(store, "cells")
    assert (first["counts_agree"], first["server_requests"], first["client_requests"]) == (False, 100, 103)
    assert (first["server_ttft_mean_seconds"], first["server_ttft_within_slo_ratio"]) == (0.3, 0.9)
    assert first["server_tpot_within_slo_ratio"] is None, "20 ms lies within a bucket"
    assert (first["client_reads"], first["client_coalesced_reads"], first["client_used_ratio"]) == (1000, 0, 0.01)
    assert (first["client_descriptors_max"], first["send_lag_max_seconds"]) == (None, None)
    assert {second[name] for name in first if name.startswith("server_")} == {None}
    assert '<td class="text wrap">' + warning in fetched(store, "report.html").decode()
