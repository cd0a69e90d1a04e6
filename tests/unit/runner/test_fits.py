"""Which requests a server's model length has room for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput.analysis.schema.planned import Load
from goodput.runner.fits import longest_request, may_not_fit, never_fit, shortest_request
from goodput.runner.load.lengths import PlannedLengths
from goodput.runner.modellength import with_room


def load(**fields: Any) -> Load:
    return Load(arrival="poisson", request_rate=1, window_seconds=1, **fields)


EXACT = load(prompt_tokens=100, output_tokens=28)
UNIFORM = load(prompt_tokens=100, output_tokens=28, length_distribution="uniform", length_variation=0.5)
NORMAL = load(prompt_tokens=100, output_tokens=28, length_distribution="normal", length_variation=0.5, max_tokens=200)
ROWS = load(dataset="jsonl", dataset_uri="s3://b/x", max_tokens=200)


@pytest.mark.parametrize(
    ("planned", "room", "never", "perhaps"),
    [
        (EXACT, 128, False, False),
        (EXACT, 127, True, False),
        (UNIFORM, 239, False, False),
        (UNIFORM, 238, False, True),
        (UNIFORM, 16, True, False),
        (NORMAL, 199, False, True),
        (NORMAL, 20, False, True),
        (ROWS, 200, False, False),
        (ROWS, 20, False, True),
    ],
)
def test_only_what_is_certain_never_fits(planned: Load, room: int, never: bool, perhaps: bool) -> None:
    assert never_fit([planned], room) == ((planned,) if never else ())
    assert may_not_fit([planned], room) == ((planned,) if perhaps else ())


@given(seed=st.integers(0, 2**32), variation=st.floats(0.01, 0.577), prompt=st.integers(1, 5000))
def test_no_drawn_request_is_longer_or_shorter(seed: int, variation: float, prompt: int) -> None:
    drawn = load(prompt_tokens=prompt, output_tokens=64, length_distribution="uniform", length_variation=variation)
    lengths = PlannedLengths(drawn, seed)
    sizes = [sum(lengths.at(index)) for index in range(200)]
    assert shortest_request(drawn) <= min(sizes) <= max(sizes) <= longest_request(drawn)


@given(shapes=st.lists(st.tuples(st.integers(1, 100), st.integers(1, 100)), min_size=1), room=st.integers(1, 200))
def test_a_warm_up_has_only_what_the_server_can_take(shapes: list[tuple[int, int]], room: int) -> None:
    kept = with_room(shapes, {"max_model_len": str(room)})
    assert kept == [shape for shape in shapes if sum(shape) <= room] or (kept == shapes and min(map(sum, kept)) > room)
    assert with_room(shapes, {}) == shapes
