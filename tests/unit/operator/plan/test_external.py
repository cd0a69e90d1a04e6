"""Trials at one external server never overlap, whatever the parallelism; what they send never repeats."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from goodput.operator import actions as do
from goodput.operator.observed import Runner, Server
from goodput.operator.spec.resolve import resolve
from goodput.operator.sweep import Sweep, TrialId
from goodput.operator.trialplan import trial_plan
from goodput.runner.contract import ServerFacts

SAME = "https://gateway/v1"


def of(document: dict[str, Any], *urls: str, uid: str = "0123456789abcdef") -> Sweep:
    document = copy.deepcopy(document)
    document["spec"] |= {
        "engines": [{"name": f"e{n}", "kind": "external", "external": {"url": url}} for n, url in enumerate(urls)],
        "plan": {"blocks": {"min": 2}, "parallelism": 4, "sentinel": "off"},
    }
    del document["spec"]["configs"]
    return resolve(document, namespace="default", uid=uid)


def remembered(book: Any) -> list[str]:
    return [book.sweep.by_id[a.trial.config].engine for a in book.actions() if isinstance(a, do.Remember)]


def test_one_trial_at_a_time_for_each_address(book: Any, document: dict[str, Any]) -> None:
    book.sweep = of(document, SAME, "https://gateway", "https://elsewhere")
    first = remembered(book)
    assert len(first) == 2
    assert "e2" in first
    assert len({"e0", "e1"} & set(first)) == 1


@pytest.mark.parametrize("state", ["remembered", "used", "stopping"])
def test_the_other_engine_waits_until_nobody_sends(book: Any, document: dict[str, Any], state: str) -> None:
    book.sweep = of(document, SAME, SAME)
    first, second = book.id(0), book.id(1)
    book.add(first)
    if state == "used":
        book.trials[first] = replace(book.trials[first], server=Server("ready", book.now - 60, url=SAME))
    if state == "stopping":  # its use has ended, the runner that was told to go is still there
        memory = replace(book.trials[first].memory, ended=book.now - 9, server_gone=book.now - 5, logs="saved")
        book.trials[first] = replace(book.trials[first], memory=memory, runner=Runner("stopping", book.now - 30))
    assert remembered(book) == []
    book.done(first)
    assert [a.trial for a in book.actions() if isinstance(a, do.Remember)] == [second]


def seeds(sweep: Sweep, trial: TrialId) -> set[int]:
    found = trial_plan(sweep, trial, ServerFacts(url=SAME, external=True, order=1))
    return {found.warmup_seed, *(load.seed for load in found.loads)}


def test_no_attempt_and_no_sweep_repeats_what_was_sent_before(document: dict[str, Any]) -> None:
    sweep, again = of(document, SAME), of(document, SAME, uid="fedcba9876543210")
    config = sweep.configs[0].id
    drawn = [
        seeds(sweep, TrialId("0", config, 1)),
        seeds(sweep, TrialId("0", config, 2)),
        seeds(sweep, TrialId("1", config, 1)),
        seeds(again, TrialId("0", config, 1)),
    ]
    assert len(set.union(*drawn)) == sum(map(len, drawn)) == 12


def test_engines_at_one_address_get_prompts_of_their_own_and_others_the_same(document: dict[str, Any]) -> None:
    shared, apart = of(document, SAME, SAME), of(document, SAME, "https://elsewhere")
    one, other = (seeds(shared, TrialId("0", config.id, 1)) for config in shared.configs)
    assert not one & other
    one, other = (seeds(apart, TrialId("0", config.id, 1)) for config in apart.configs)
    assert one == other, "common random numbers"
