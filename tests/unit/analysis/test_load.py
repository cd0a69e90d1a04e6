from __future__ import annotations

import pytest

from goodput.analysis.schema.planned import Load, Stage

OPEN = Load(prompt_tokens=2048, output_tokens=64, arrival="poisson", request_rate=4, window_seconds=60)
CLOSED = Load(prompt_tokens=2048, output_tokens=64, arrival="closed", concurrency=16, window_requests=500)
GAMMA = Load(prompt_tokens=512, output_tokens=128, arrival="gamma", burstiness=0.5, request_rate=0.5, window_seconds=30)
STAGES = (Stage(duration_seconds=30, rate=2), Stage(duration_seconds=30, rate=2, end_rate=8))


def test_ids_are_what_they_were() -> None:
    """Pinned: results that are stored under these ids must be found again."""
    assert (OPEN.id, CLOSED.id, GAMMA.id) == ("c6f829b65f", "5879399912", "4841beaff6")


@pytest.mark.parametrize(
    "changes",
    [
        {"length_distribution": "normal", "length_variation": 0.5, "max_tokens": 4096},
        {"prefix_groups": 4, "prefix_tokens": 512},
        {"request_rate": None, "stages": STAGES},
        {"dataset": "sharegpt", "dataset_uri": "file:///x", "prompt_tokens": None, "output_tokens": None},
    ],
)
def test_what_is_sent_is_part_of_the_id(changes: dict[str, object]) -> None:
    assert OPEN.model_copy(update=changes).id != OPEN.id


def test_stages_are_part_of_the_id() -> None:
    loads = [OPEN.model_copy(update={"stages": stages}) for stages in (STAGES, STAGES[:1], STAGES[::-1])]
    assert len({load.id for load in loads}) == 3


@pytest.mark.parametrize(
    ("changes", "label"),
    [
        ({}, "2048→64 @ 4/s"),
        ({"request_rate": 0.5, "length_distribution": "normal"}, "~2048→64 @ 0.5/s"),
        ({"request_rate": None, "arrival": "closed", "concurrency": 16}, "2048→64 × 16"),
        ({"request_rate": None, "stages": STAGES}, "2048→64 @ 2-8/s"),
        ({"request_rate": None, "arrival": "burst", "window_requests": 500}, "2048→64 burst of 500"),
        ({"request_rate": None, "dataset": "trace", "prompt_tokens": None, "speed": 10.0}, "trace at 10x speed"),
    ],
)
def test_labels_are_short(changes: dict[str, object], label: str) -> None:
    assert OPEN.model_copy(update=changes).label == label


def test_the_highest_rate_is_that_of_the_steepest_stage() -> None:
    assert OPEN.model_copy(update={"request_rate": None, "stages": STAGES}).highest_rate == 8
    assert CLOSED.highest_rate is None
