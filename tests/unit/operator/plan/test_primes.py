"""Starts that fill the compile cache: which, in what order, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.operator.plan.conftest import Book

from goodput.analysis.schema.base import PRIME
from goodput.analysis.schema.planned import Config
from goodput.operator.actions import Note, Remember, SaveLogs, StartRunner, StartServer, StopServer
from goodput.operator.observed import Failure
from goodput.operator.plan.trials import PRIMED
from goodput.operator.spec.compilekey import compile_key
from goodput.operator.spec.planview import render_plan
from goodput.operator.spec.resolve import resolve
from goodput.operator.sweep import TrialId

Document = dict[str, Any]


@pytest.fixture
def primed(document: Document) -> Callable[..., Book]:
    """A book whose servers share a compile cache that is filled first."""

    def make(**configs: Any) -> Book:
        spec = document["spec"]
        engine = {**spec["engines"][0], "compileCache": {"mode": "prime", "claimName": "compiled"}}
        changed = {**spec, "engines": [engine], **({"configs": configs} if configs else {})}
        return Book(resolve({**document, "spec": changed}, namespace="default", uid="0123456789abcdef"))

    return make


def test_every_budget_is_a_key_of_its_own_and_comes_before_the_first_block(primed: Callable[..., Book]) -> None:
    book = primed()
    assert len(book.sweep.primes) == 3
    assert [block for block, _ in book.sweep.sequence()][:4] == [PRIME] * 3 + ["0"]
    assert book.sweep.planned_cells == 12
    assert book.actions() == (Remember(TrialId(PRIME, book.sweep.primes[0], 1), 1),)


def test_configs_that_compile_the_same_are_filled_by_one_start(primed: Callable[..., Book]) -> None:
    book = primed(grid={"long_prefill_token_threshold": [0, 256], "max_num_batched_tokens": [1024, 2048]})
    budgets = [book.sweep.by_id[config].flags["max_num_batched_tokens"] for config in book.sweep.primes]
    assert (len(book.sweep.configs), sorted(budgets)) == (4, ["1024", "2048"])


@pytest.mark.parametrize(
    ("flags", "same"),
    [
        ({"gpu_memory_utilization": "0.8"}, True),
        ({"enable_prefix_caching": "false"}, True),
        ({"max_num_seqs": "32"}, False),
        ({"max_num_batched_tokens": "64"}, False),
        ({"attention_backend": "FLASHINFER"}, False),
        ({"some_flag_of_a_newer_version": "1"}, False),
    ],
)
def test_flags_of_the_compile_key(flags: dict[str, str], same: bool) -> None:
    base = Config(engine="a", kind="vllm", flags={"max_num_seqs": "64"})
    other = Config(engine="a", kind="vllm", flags={"max_num_seqs": "64", **flags})
    assert (compile_key(base) == compile_key(other)) is same
    assert compile_key(base) != compile_key(base.model_copy(update={"engine": "b"}))


def test_eager_configs_compile_nothing(primed: Callable[..., Book]) -> None:
    book = primed(list=[{"enforce_eager": "true"}, {"enforce_eager": "false"}])
    (config,) = book.sweep.primes
    assert book.sweep.by_id[config].flags["enforce_eager"] == "false"


def test_other_modes_fill_nothing(book: Book) -> None:
    assert book.sweep.primes == ()
    assert "primes" not in book.plan().status["plan"]  # type: ignore[operator]


def test_its_life_from_the_start_to_the_end(primed: Callable[..., Book]) -> None:
    book = primed()
    trial = TrialId(PRIME, book.sweep.primes[0], 1)
    book.add(trial)
    assert StartServer(trial) in book.actions()
    book.ready(trial)
    (note,) = book.actions()
    assert note == Note(trial, outcome=PRIMED)
    memory = replace(book.trials[trial].memory, outcome=PRIMED)
    book.trials[trial] = replace(book.trials[trial], memory=memory)
    (note,) = book.actions()
    assert note == Note(trial, ended=book.now)
    book.trials[trial] = replace(book.trials[trial], memory=replace(memory, ended=book.now))
    assert set(book.actions()) == {SaveLogs(trial)}
    book.trials[trial] = replace(book.trials[trial], memory=replace(memory, ended=book.now, logs="saved"))
    assert set(book.actions()) == {StopServer(trial)}
    assert not any(isinstance(action, StartRunner) for action in book.actions())


def test_the_first_block_waits_for_all_of_them(primed: Callable[..., Book]) -> None:
    book = primed()
    for config in book.sweep.primes[:2]:
        book.over(TrialId(PRIME, config, 1), PRIMED)
    assert book.actions() == (Remember(TrialId(PRIME, book.sweep.primes[2], 1), 3),)
    book.over(TrialId(PRIME, book.sweep.primes[2], 1), PRIMED)
    assert book.actions() == (Remember(book.id(0), 4),), "and no analysis: nothing was measured"


def test_one_that_gives_up_leaves_the_measurement_to_go_on(primed: Callable[..., Book]) -> None:
    book = primed()
    for config in book.sweep.primes:
        for attempt in (1, 2, 3):
            book.over(TrialId(PRIME, config, attempt), failure="StartupTimeout")
    assert book.actions() == (Remember(book.id(0), 10),)
    counts = book.plan().status["counts"]
    assert isinstance(counts, dict)
    assert (counts["pending"], counts["failed"], counts["failedConfigs"], counts["trials"]) == (12, 0, 0, 9)


def test_where_the_first_of_a_key_cannot_fill_the_cache_the_next_one_does(primed: Callable[..., Book]) -> None:
    book = primed(grid={"max_num_batched_tokens": [1024, 2048], "num_gpu_blocks_override": [512, 1024, 2048]})
    first, second = book.sweep.primes
    _, next_one, last = (c.id for c in book.sweep.configs if compile_key(c) == compile_key(book.sweep.by_id[first]))
    book.over(TrialId(PRIME, second, 1), PRIMED)
    book.over(TrialId(PRIME, first, 1), failure="InvalidServerArgs")
    assert book.actions() == (Remember(TrialId(PRIME, next_one, 1), 3),)
    for attempt in (1, 2, 3):
        book.over(TrialId(PRIME, next_one, attempt), failure="StartupTimeout")
    assert book.actions() == (Remember(TrialId(PRIME, last, 1), 6),)
    book.over(TrialId(PRIME, last, 1), PRIMED)
    (begun,) = book.actions()
    assert isinstance(begun, Remember)
    assert begun.trial.block == "0"


def test_a_config_that_fails_once_the_cache_is_filled_needs_nobody_in_its_place(primed: Callable[..., Book]) -> None:
    book = primed(grid={"max_num_batched_tokens": [1024], "num_gpu_blocks_override": [512, 1024]})
    (first,) = book.sweep.primes
    book.over(TrialId(PRIME, first, 1), PRIMED)
    book.over(TrialId("0", first, 1), failure="CudaOutOfMemory")
    assert [action.trial.block for action in book.actions() if isinstance(action, Remember)] == ["0"]


def test_a_config_that_can_never_start_is_found_before_it_is_measured(primed: Callable[..., Book]) -> None:
    book = primed()
    trial = TrialId(PRIME, book.sweep.primes[0], 1)
    book.over(trial, failure="InvalidServerArgs")
    assert book.trials[trial].memory.failure == Failure("InvalidServerArgs", "because of InvalidServerArgs")
    counts = book.plan().status["counts"]
    assert isinstance(counts, dict)
    assert (counts["failed"], counts["failedConfigs"]) == (4, 1)


def test_the_plan_shows_them(primed: Callable[..., Book]) -> None:
    book = primed()
    text = render_plan(book.sweep)
    assert "12 cells in 6 server starts after 3 that fill the compile cache" in text
    assert text.count("fills the compile cache, no cell") == 3
    assert book.plan().status["plan"] == {
        "sentinel": False, "configs": 3, "loads": 2, "blocks": 2, "cells": 12, "primes": 3
    }  # fmt: skip
