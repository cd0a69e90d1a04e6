from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from goodput.analysis.schema.cell import Asked, Client, Counts
from goodput.analysis.schema.server import RequestTally, ServerColumns, ServerHistogram
from goodput.runner.snapshot import Snapshot
from goodput.runner.validity import RULES, Facts, verdict, warnings

SNAPSHOT = Snapshot(
    stamp=0.0, start_time=1.0, running=0, waiting=0, preemptions=1, prompt_tokens=10, generation_tokens=10
)
CLIENT = Client(
    processes=1,
    planned=1000,
    sent=1000,
    send_lag_p50_seconds=0.0001,
    send_lag_p99_seconds=0.001,
    cpu_seconds=1.0,
    events=1000,
    reads=1000,
    coalesced_reads=0,
    ceiling_events_per_second=100_000.0,
    used_ratio=0.1,
    stamp_source="kernel",
    clock_step_seconds=0.0001,
    connections_max=10,
)
SERVER = ServerColumns(complete=True, prefix_queries=1000, prefix_hits=5)
CLEAN = Facts(opening=SNAPSHOT, closing=SNAPSHOT, client=CLIENT, server=SERVER, open_loop=True, fresh_prompts=True)


def client(**changes: Any) -> Facts:
    return replace(CLEAN, client=CLIENT.model_copy(update=changes))


def closing(**changes: Any) -> Facts:
    return replace(CLEAN, closing=SNAPSHOT.model_copy(update=changes))


SPOILED = {
    "ServerGone": replace(CLEAN, closing=None),
    "ServerRestarted": closing(start_time=2.0),
    "CounterReset": closing(generation_tokens=9),
    "NoWindow": replace(CLEAN, window_opened=False),
    "ClientShort": client(sent=979),
    "ScheduleLag": client(send_lag_p99_seconds=0.0101),
    "ClientSaturated": client(used_ratio=0.51),
    "PrefixHit": replace(CLEAN, server=SERVER.model_copy(update={"prefix_hits": 11})),
    "PromptDrift": replace(CLEAN, prompt_drift=0.011),
    "ClockStep": client(clock_step_seconds=0.0006),
}


def test_a_clean_cell_is_valid() -> None:
    assert verdict(CLEAN) is None


def test_every_rule_has_a_case() -> None:
    assert [reason for reason, _ in RULES] == list(SPOILED)


@pytest.mark.parametrize("reason", SPOILED)
def test_each_case_provokes_its_rule_and_no_other(reason: str) -> None:
    facts = SPOILED[reason]
    assert [name for name, check in RULES if check(facts) is not None] == [reason]
    found = verdict(facts)
    assert found is not None
    assert found[0] == reason
    assert found[1]


@pytest.mark.parametrize(
    "facts",
    [
        client(sent=980),
        client(send_lag_p99_seconds=0.010),
        client(send_lag_p99_seconds=None),
        client(used_ratio=0.5),
        client(used_ratio=None),
        client(planned=0, sent=0),
        client(clock_step_seconds=-0.0005),
        replace(client(send_lag_p99_seconds=1.0), open_loop=False),
        replace(SPOILED["PrefixHit"], fresh_prompts=False),
        replace(CLEAN, server=None),
        replace(CLEAN, server=SERVER.model_copy(update={"prefix_queries": 0, "prefix_hits": 0})),
        replace(CLEAN, prompt_drift=0.01),
        replace(CLEAN, opening=Snapshot(stamp=0.0), closing=Snapshot(stamp=1.0)),
    ],
)
def test_at_the_limit_or_not_applicable_is_valid(facts: Facts) -> None:
    assert verdict(facts) is None


def test_client_and_server_counts_that_differ_are_a_warning_with_both() -> None:
    counts = Counts(attempted=5, completed=5, failed=0, incomplete=0, not_sent=0)
    client = RequestTally(finished=11, other=2)
    server = SERVER.model_copy(
        update={"requests_finished": {"length": 9.0, "stop": 1.0, "error": 0.0}, "requests_client": client}
    )
    assert warnings(counts, server) == ()
    assert warnings(counts, server.model_copy(update={"counts_agree": True})) == ()
    assert warnings(counts, server.model_copy(update={"counts_agree": False})) == (
        "CountsDiffer: the server counts 9 length, 1 stop, the client 11 finished, 2 otherwise",
    )


def between(*samples: Snapshot) -> Facts:
    return replace(CLEAN, samples=samples)


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (between(SNAPSHOT.model_copy(update={"start_time": 2.0})), "ServerRestarted"),
        (between(SNAPSHOT.model_copy(update={"generation_tokens": 12}), SNAPSHOT), "CounterReset"),
        (between(SNAPSHOT.model_copy(update={"finished": {"length": 5.0}}), Snapshot(stamp=1)), None),
        (
            between(
                SNAPSHOT.model_copy(update={"finished": {"length": 5.0}}),
                SNAPSHOT.model_copy(update={"finished": {"length": 4.0}}),
            ),
            "CounterReset",
        ),
        (between(Snapshot(stamp=1, problem="NoServerMetrics: JSON"), SNAPSHOT), None),
    ],
)
def test_resets_between_the_snapshots_are_seen(facts: Facts, reason: str | None) -> None:
    assert (verdict(facts) or (None,))[0] == reason


def test_a_histogram_that_lost_values_is_a_reset() -> None:
    before, after = (
        SNAPSHOT.model_copy(update={"histograms": {"ttft": ServerHistogram(edges=(0.1,), counts=(count, 0))}})
        for count in (4, 3)
    )
    assert verdict(replace(CLEAN, opening=before, closing=after)) == ("CounterReset", "ttft histogram went from 4 to 3")


def test_a_cell_without_a_completed_request_is_a_warning_that_names_the_reason() -> None:
    none = Counts(attempted=9, completed=0, failed=9, incomplete=0, not_sent=0, reasons={"Http400": 7, "Timeout": 2})
    assert warnings(none, None) == ("NothingCompleted: none of 9 requests completed, most often: Http400",)
    assert warnings(none.model_copy(update={"completed": 1}), None) == ()


def test_a_metrics_gap_is_a_warning() -> None:
    (warning,) = warnings(None, ServerColumns(complete=False, reason="MetricsGap: no samples for 2.0 s of the window"))
    assert warning == "MetricsGap: no samples for 2.0 s of the window"


def hits(share: float, planned: float) -> Facts:
    server = SERVER.model_copy(update={"prefix_hits": 1000 * share})
    return replace(CLEAN, server=server, planned_hits=planned)


def test_hits_are_held_against_the_plan() -> None:
    assert verdict(hits(0.66, 0.65)) is None
    assert verdict(hits(0.40, 0.65)) is None
    assert verdict(hits(0.67, 0.65)) == (
        "PrefixHit",
        "67.0% of prompt tokens came from the prefix cache, planned is 65.0%",
    )


def test_fewer_hits_than_planned_and_repeated_rows_are_warnings() -> None:
    server = hits(0.40, 0.65).server
    assert warnings(None, server, Asked(prefix_hit_ratio=0.65, repeated_requests=3)) == (
        "PrefixMiss: 40.0% of prompt tokens came from the prefix cache, planned is 65.0%",
        "RowsRepeated: 3 requests repeat a row of the dataset, which is too short",
    )
    assert warnings(None, server, Asked(prefix_hit_ratio=0.40)) == ()


def test_a_burst_may_be_sent_over_a_share_of_its_makespan() -> None:
    late = client(send_lag_p99_seconds=0.2)
    assert (verdict(late) or ("",))[0] == "ScheduleLag"
    assert verdict(replace(late, lag_seconds=0.3)) is None
