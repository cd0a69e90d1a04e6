"""The newer of watch and own writes counts, and what is gone stays gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput.operator.cluster import bodies, names
from goodput.operator.cluster.cache import Cache
from goodput.operator.cluster.names import Owner

Body = dict[str, Any]
Make = Callable[..., Body]
SWEEP = "sweep-uid"


def job(version: int, uid: str = "a") -> Body:
    labels = {names.SWEEP_UID: SWEEP}
    return {"kind": "Job", "metadata": {"name": uid, "uid": uid, "labels": labels, "resourceVersion": str(version)}}


def versions(cache: Cache) -> dict[str, str]:
    return {bodies.uid(body): bodies.meta(body)["resourceVersion"] for body in cache.children(SWEEP).jobs}


@given(st.lists(st.integers(1, 20), min_size=1))
def test_the_newest_counts_in_whatever_order_it_comes(order: list[int]) -> None:
    cache = Cache()
    for version in order:
        cache.put("Job", job(version))
    assert versions(cache) == {"a": str(max(order))}


def test_the_same_again_is_no_news() -> None:
    cache = Cache()
    assert cache.put("Job", job(2))
    assert not cache.put("Job", job(2))
    assert cache.put("Job", job(3))


def test_a_late_answer_does_not_bring_back_what_is_gone() -> None:
    cache = Cache()
    cache.put("Job", job(1))
    cache.drop("Job", SWEEP, "a")
    assert not cache.put("Job", job(9))
    assert versions(cache) == {}


def test_a_deleted_object_is_leaving_until_the_watch_says_it_is_gone() -> None:
    cache = Cache()
    cache.put("Job", job(1))
    cache.leaving("Job", SWEEP, "a")
    assert [bodies.deleting(body) for body in cache.children(SWEEP).jobs] == [True]
    cache.drop("Job", SWEEP, "a")
    assert not cache.children(SWEEP).any


def test_a_fresh_list_shows_what_the_watch_missed() -> None:
    cache = Cache()
    cache.put("Job", job(1, "ghost"))
    cache.put("Job", job(1, "known"))
    assert cache.replace("Job", SWEEP, [job(1, "known"), job(2, "missed")])
    assert versions(cache) == {"known": "1", "missed": "2"}
    assert not cache.replace("Job", SWEEP, [job(1, "known"), job(2, "missed")])


def test_contents_of_config_maps_are_not_kept() -> None:
    cache = Cache()
    body = {**job(1), "kind": "ConfigMap", "data": {"trial.json": "{}"}, "binaryData": {"x": "eA=="}}
    assert not cache.put("ConfigMap", body), "logs and inputs are not watched"
    body["metadata"]["labels"][names.ROLE] = names.MEMORY
    cache.put("ConfigMap", body)
    (kept,) = cache.children(SWEEP).config_maps
    assert kept.keys() == {"kind", "metadata"}


@pytest.mark.parametrize("labels", [{}, {"app": "other"}])
def test_what_belongs_to_no_sweep_is_left_out(labels: dict[str, str], owner: Owner) -> None:
    cache = Cache()
    body = job(1)
    body["metadata"]["labels"] = labels
    assert not cache.put("Job", body)
    assert not cache.children(owner.uid).any
