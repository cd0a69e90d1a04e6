"""Status writes are as small as the change; an Event tells of each change of phase or reason, once."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from goodput.operator.cluster import statuses
from goodput.operator.cluster.names import Owner
from goodput.operator.cluster.statuses import News

leaves = st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=3)  # a status holds no null
documents = st.recursive(
    st.dictionaries(st.text(max_size=3), leaves, max_size=4),
    lambda inner: st.dictionaries(st.text(max_size=3), inner | leaves, max_size=4),
    max_leaves=8,
)


def apply(document: Any, patch: dict[str, Any]) -> dict[str, Any]:
    """RFC 7386, as the API server does it."""
    done = copy.deepcopy(document) if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            done.pop(key, None)
        elif isinstance(value, dict):
            done[key] = apply(done.get(key), value)
        else:
            done[key] = value
    return done


@given(documents, documents)
def test_the_patch_makes_one_of_the_other(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert apply(old, statuses.merge_patch(old, new)) == new


@given(documents)
def test_no_change_needs_no_write(status: dict[str, Any]) -> None:
    assert statuses.merge_patch(status, copy.deepcopy(status)) == {}


def condition(kind: str, status: str, reason: str, message: str = "") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def test_a_new_phase_is_told_with_its_reason() -> None:
    new = {"phase": "Queued", "conditions": [condition("Progressing", "True", "WaitingForCapacity", "no GPU")]}
    assert list(statuses.news({"phase": "Running"}, new)) == [
        News("Queued", "WaitingForCapacity: no GPU", warning=False)
    ]


def test_an_end_that_is_none_is_a_warning() -> None:
    new = {"phase": "PartiallyFailed", "conditions": [condition("Complete", "True", "CellsMissing", "2 cells")]}
    assert list(statuses.news({}, new)) == [News("PartiallyFailed", "CellsMissing: 2 cells", warning=True)]


def test_a_new_error_and_a_refusing_store_are_told_once() -> None:
    refusing = condition("ResultsCommitted", "False", "UploadDenied", "403")
    new = {"phase": "Running", "lastError": {"reason": "EngineDead", "message": "m"}, "conditions": [refusing]}
    told = list(statuses.news({"phase": "Running"}, new))
    assert told == [News("EngineDead", "m", warning=True), News("UploadDenied", "403", warning=True)]
    assert list(statuses.news(new, new)) == []


def test_the_same_news_twice_has_the_same_name(owner: Owner) -> None:
    found = News("Running", "m" * 5000, warning=False)
    first, second = (statuses.event(owner, found, 1.0) for _ in range(2))
    assert first == second
    assert len(first["message"]) == 1024
    assert first["involvedObject"]["uid"] == owner.uid
