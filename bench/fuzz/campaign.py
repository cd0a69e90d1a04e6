"""Many mutants, over several processes."""

from __future__ import annotations

import multiprocessing
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

from bench.fuzz.check import Again, Result, check
from bench.fuzz.corpus import answers
from bench.fuzz.mutate import mutant
from bench.fuzz.rig import Rig

_AGAIN: tuple[Again | None, ...] = (None, "json", None, "one read", None)  # five is prime to any number of processes


class Found(NamedTuple):
    """A mutant that breaks what must hold."""

    number: int
    answer: str
    complaints: list[str]


class Summary(NamedTuple):
    """What came of the mutants: how often each verdict, what broke, how much there was of it."""

    verdicts: Counter[str]
    found: list[Found]
    megabytes: float
    cpu_seconds: float


def share(numbers: range, seed: int) -> Summary:
    """Check these mutants."""
    rig, corpus = Rig(), answers()
    verdicts: Counter[str] = Counter()
    found, size = [], 0
    cpu = time.process_time()
    for number in numbers:
        answer = mutant(corpus, number, seed)
        size += len(answer.data)
        try:
            result = check(rig, answer, _AGAIN[number % len(_AGAIN)])
        except Exception as error:  # noqa: BLE001 (a crash is a finding like others)
            result, rig = Result("crash", [repr(error)]), Rig()
        verdicts[result.reason or "completed"] += 1
        if result.complaints:
            found.append(Found(number, answer.name, result.complaints))
    return Summary(verdicts, found, size / 1e6, time.process_time() - cpu)


def campaign(mutants: int, *, first: int = 0, seed: int = 0, processes: int = 1) -> Summary:
    """Check the mutants from ``first`` on."""
    shares = [range(first + n, first + mutants, processes) for n in range(processes)]
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        summaries = list(pool.map(partial(share, seed=seed), shares))
    return Summary(
        sum((summary.verdicts for summary in summaries), Counter()),
        sorted(found for summary in summaries for found in summary.found),
        sum(summary.megabytes for summary in summaries),
        sum(summary.cpu_seconds for summary in summaries),
    )
