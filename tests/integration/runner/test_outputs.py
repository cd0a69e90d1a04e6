"""The output check against the simulated engine: flags that change what it answers, and flags that do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from goodput.analysis.schema.base import Endpoint
from goodput.analysis.schema.cell import Outputs
from goodput.analysis.schema.planned import Load
from goodput.runner.contract import OutputCheck, ServerFacts, TrialPlan
from goodput.runner.errors import RequestRefusedError
from goodput.runner.outputs import answer, continuations, prompts
from goodput.runner.server import Server
from goodput.runner.stop import Stop

if TYPE_CHECKING:
    from tests.integration.runner.conftest import Engine, Results, Runner

CHECK = OutputCheck(seed=5, prompts=4, tokens=6)


def ask(engine: Engine, endpoint: Endpoint = "completions") -> Outputs:
    server = Server(ServerFacts(url=engine.url, order=1), model="toy/model")
    try:
        return continuations(server, endpoint, CHECK, Stop())
    finally:
        server.close()


@pytest.mark.parametrize("endpoint", ["completions", "chat"])
def test_a_flag_that_changes_the_output_is_seen_and_one_that_does_not_is_not(
    engines: Callable[..., Engine], endpoint: Endpoint
) -> None:
    first = ask(engines(), endpoint)
    assert [len(found) for found in first.continuations] == [6] * 4
    assert all(isinstance(token, int) for found in first.continuations for token in found)
    budget = engines("--max-num-batched-tokens", "128", "--enable-prefix-caching")
    assert ask(budget, endpoint) == first
    assert ask(budget, endpoint) == first, "what was sent before has no part in it"
    other = ask(engines("--seed", "7"), endpoint)
    assert other.prompts_sha256 == first.prompts_sha256
    assert not set(other.continuations) & set(first.continuations)


def test_a_server_that_refuses_the_prompts_is_measured_all_the_same(
    engines: Callable[..., Engine],
    run: Callable[..., Runner],
    planned: Callable[..., TrialPlan],
    results: Results,
    loads: list[Load],
) -> None:
    engine = engines("--max-model-len", "40")
    short = [load.model_copy(update={"output_tokens": 4}) for load in loads]
    plan = planned(engine.url, results.uri, short, output_check=OutputCheck(seed=5))
    assert run(plan).end().valid == len(short)
    cell = results.cell(plan, 0)
    assert cell.outputs is None
    assert any(text.startswith("no output check: ") for text in cell.warnings)


def test_an_answer_that_the_model_length_cuts_is_not_compared(engines: Callable[..., Engine]) -> None:
    """The longest of the prompts fits, and one token after it."""
    engine = engines()
    server = Server(ServerFacts(url=engine.url, order=1), model="toy/model")
    prompt = max(len(server.tokenize(prompt=text) or ()) for text in prompts(CHECK))
    server.close()
    assert len(ask(engines("--max-model-len", str(prompt + CHECK.tokens + 1))).continuations) == 4
    with pytest.raises(RequestRefusedError, match=r"of 6 tokens: its max_model_len has no room"):
        ask(engines("--max-model-len", str(prompt + 2)))


def test_prompts_are_the_seeds() -> None:
    assert prompts(CHECK) == prompts(CHECK)
    assert len(set(prompts(CHECK))) == 4
    assert prompts(CHECK) != prompts(CHECK.model_copy(update={"seed": 6}))


def test_ids_come_before_text() -> None:
    assert answer({"text": "a", "token_ids": [1, 2]}) == (1, 2)
    assert answer({"text": "a", "token_ids": None}) == "a"
    assert answer({"message": {"content": "b"}}) == "b"
    assert answer({"message": {"content": None}}) == ""
