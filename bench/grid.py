"""A grid of a million cells is refused without being expanded: seconds from the document to the refusal.

Run: python bench/grid.py. Beside it, what the largest sweep that is taken costs to resolve in full.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from goodput.operator.spec.errors import SpecError
from goodput.operator.spec.resolve import resolve

LIMIT_SECONDS = 0.050
ROUNDS = 20


def document(axes: int, values: int, rates: int, blocks: int) -> dict[str, Any]:
    """A sweep with ``values ** axes`` configs, ``rates`` loads and ``blocks`` blocks."""
    flags = ("block_size", "max_num_seqs", "seed", "stream_interval", "max_logprobs", "prefill_schedule_interval")
    grid = {flag: list(range(1, values + 1)) for flag in flags[:axes]}
    spec = {
        "model": {"name": "m"},
        "engines": [{"name": "vllm", "kind": "vllm"}],
        "configs": {"grid": grid},
        "workload": {"requestRate": list(range(1, rates + 1))},
        "slo": {"ttft": "1s"},
        "plan": {"blocks": {"min": blocks}},
        "results": {"uri": "file:///tmp/none"},
    }
    return {"apiVersion": "goodput.dev/v1alpha1", "kind": "BenchmarkSweep", "metadata": {"name": "grid"}, "spec": spec}


def refuse(swept: dict[str, Any]) -> str:
    """The first line of the refusal."""
    try:
        resolve(swept)
    except SpecError as error:
        return str(error).splitlines()[0]
    raise AssertionError("a grid of this size must be refused")


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Median and largest seconds of `ROUNDS` calls, the first left out: it loads the flag tables."""
    work()
    seconds = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds), max(seconds)


def main() -> None:
    """Print one line per size."""
    for axes, values, rates, blocks in ((4, 10, 10, 10), (4, 32, 1, 1), (6, 32, 32, 64)):
        swept = document(axes, values, rates, blocks)
        cells = values**axes * rates * blocks
        middle, most = timed(partial(refuse, swept))
        print(
            f"{cells:.1e} cells: refused in {1000 * middle:.1f} ms (most {1000 * most:.1f}), "
            f"{middle / LIMIT_SECONDS:.2f} of {1000 * LIMIT_SECONDS:.0f} ms: {refuse(swept)}"
        )
    largest = document(3, 10, 5, 4)
    middle, most = timed(lambda: resolve(largest))
    print(f"{10**3 * 5 * 4:.1e} cells, the most taken: resolved in {1000 * middle:.0f} ms (most {1000 * most:.0f})")


if __name__ == "__main__":
    main()
