from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput.runner.contract import OUTCOME_BYTES, OpenCell, Outcome

_reasons = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF), min_size=1, max_size=60)


@given(st.lists(_reasons, max_size=200))
def test_an_outcome_always_fits_and_counts_what_it_drops(reasons: list[str]) -> None:
    cells = tuple(OpenCell(load=f"{k:010x}", outcome="void", reason=reason) for k, reason in enumerate(reasons))
    message = Outcome(planned=200, valid=200 - len(cells), open=cells).message()
    assert len(message.encode()) <= OUTCOME_BYTES
    assert Outcome.model_validate_json(message).more + len(json.loads(message)["not"]) == len(cells)


@pytest.mark.parametrize(("valid", "done"), [(2, True), (1, False)])
def test_done_means_every_cell(valid: int, done: bool) -> None:
    assert Outcome(planned=2, valid=valid).done is done
