"""A whole sweep against an API server in memory: whatever is cut off or refused, nothing is done twice or forgotten."""

from __future__ import annotations

import asyncio
import copy
from collections import Counter
from collections.abc import Callable
from typing import Any, cast

import pytest
from prometheus_client.exposition import generate_latest

from goodput.operator.cluster import names
from goodput.operator.cluster.api import Api
from goodput.operator.cluster.cache import Cache
from goodput.operator.cluster.driver import Driver, is_active
from goodput.operator.cluster.errors import ApiError
from goodput.operator.cluster.kit import Kit
from goodput.operator.cluster.names import Owner
from goodput.operator.cluster.rest import Rest
from goodput.operator.cluster.settings import Images
from goodput.operator.metrics import Metrics

MakeWorld = Callable[..., Any]
KINDS = {"Pod": "pods", "Job": "jobs", "Deployment": "deployments", "ConfigMap": "configmaps"}
ENDS = {"Succeeded", "PartiallyFailed", "Failed", "Cancelled"}
IMAGES = Images(runner="runner:1", analysis="analysis:1", engines="engines:1")


class Operator:
    """An operator process: its memory is gone when it is started anew."""

    def __init__(self, world: Any, owner: Owner) -> None:
        self.world = world
        self.kit = Kit(Api(cast("Rest", world)), Cache(), IMAGES, Metrics())
        self.owner = owner
        self.driver = Driver(owner, self.kit, lambda: None)

    def watch(self) -> None:
        """The watch has caught up."""
        for kind, plural in KINDS.items():
            role = names.MEMORY if kind == "ConfigMap" else None
            self.kit.cache.replace(kind, self.owner.uid, copy.deepcopy(self.world.of(plural, role)))

    async def look(self) -> float:
        return await self.driver.look(copy.deepcopy(self.world.sweep))

    async def run(self, rounds: int = 200) -> str:
        """Look until the sweep has ended; its phase."""
        for _ in range(rounds):
            self.watch()
            await self.look()
            phase = str(self.world.sweep.get("status", {}).get("phase"))
            if phase in ENDS:
                return phase
            self.world.work()
        pytest.fail(f"the sweep does not end: {self.world.sweep.get('status')}, {list(self.world.objects)}")


def conditions(world: Any) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one["reason"]) for one in world.sweep["status"]["conditions"]}


def test_a_sweep_runs_from_canary_to_tables(make_world: MakeWorld, owner: Owner) -> None:
    world = make_world()
    operator = Operator(world, owner)
    assert asyncio.run(operator.run()) == "Succeeded"
    roles = Counter(name.rpartition("-")[2] for kind, name in world.created if kind == "jobs")
    assert roles == {"canary": 1, "run": 2, "1": 1}
    assert sum(kind == "deployments" for kind, _ in world.created) == 2
    assert world.of("deployments") == []
    assert world.of("configmaps", names.LOGS) == []
    assert conditions(world)["ResultsCommitted"] == ("True", "TablesWritten")


EXTERNAL: dict[str, Any] = {
    "engines": [
        {"name": name, "kind": "external", "external": {"url": "https://gateway", "apiKeySecretRef": {"name": "g"}}}
        for name in ("one", "two")
    ],
    "configs": None,
}


def test_an_external_sweep_starts_runners_and_nothing_else(make_world: MakeWorld, owner: Owner) -> None:
    world = make_world(**EXTERNAL)
    assert asyncio.run(Operator(world, owner).run()) == "Succeeded"
    assert not [name for kind, name in world.created if kind == "deployments"]
    assert sum(name.endswith("-run") for kind, name in world.created if kind == "jobs") == 2
    for memory in world.of("configmaps", names.MEMORY):
        assert names.EXTERNAL not in memory["metadata"]["annotations"], "its use has ended"
        assert '"url":"https://gateway"' in memory["data"]["trial.json"].replace(" ", "")


def test_after_the_end_everything_is_deleted(make_world: MakeWorld, owner: Owner) -> None:
    world = make_world()
    asyncio.run(Operator(world, owner).run())
    janitor = Operator(world, owner)
    janitor.watch()
    asyncio.run(janitor.look())
    world.work()
    assert list(world.objects) == [("benchmarksweeps", "t")]
    janitor.watch()
    assert not janitor.kit.cache.children(owner.uid).any


def test_children_stay_for_as_long_as_was_asked(make_world: MakeWorld, owner: Owner) -> None:
    world = make_world(retention={"ttlAfterFinished": "1h"})
    asyncio.run(Operator(world, owner).run())
    before = set(world.objects)
    janitor = Operator(world, owner)
    janitor.watch()
    asyncio.run(janitor.look())
    assert set(world.objects) == before
    assert world.of("configmaps", names.MEMORY)


@pytest.mark.parametrize("call", range(1, 60, 2))
def test_killed_at_any_call_it_continues_and_does_nothing_twice(call: int, make_world: MakeWorld, owner: Owner) -> None:
    world = make_world()
    world.fail_at = call

    async def lives() -> str:
        first = Operator(world, owner)
        for _ in range(200):
            first.watch()
            try:
                await first.look()
            except ApiError:
                break
            if world.calls >= call or world.sweep.get("status", {}).get("phase") in ENDS:
                break
            world.work()
        return await Operator(world, owner).run()

    assert asyncio.run(lives()) == "Succeeded"
    assert max(Counter(world.created).values()) == 1


def test_without_the_watch_own_writes_are_seen(make_world: MakeWorld, owner: Owner) -> None:
    """The watch lags behind for the whole sweep, but for what others do: nothing is created twice."""
    world = make_world(plan={"blocks": {"min": 1}, "sentinel": "off", "parallelism": 2})
    operator = Operator(world, owner)

    async def lagging() -> None:
        for _ in range(4):
            await operator.look()

    operator.watch()
    asyncio.run(lagging())
    assert max(Counter(world.created).values()) == 1


def test_a_look_without_news_writes_nothing(make_world: MakeWorld, owner: Owner) -> None:
    world = make_world()
    operator = Operator(world, owner)

    async def twice() -> tuple[int, float]:
        operator.watch()
        await operator.look()
        await operator.look()
        before = world.calls
        pause = await operator.look()
        return world.calls - before, pause

    calls, pause = asyncio.run(twice())
    assert calls == 0
    assert pause > 1


def test_a_refused_spec_starts_nothing_and_says_why(make_world: MakeWorld, owner: Owner) -> None:
    world = make_world(configs={"grid": {"max_num_batched_tokens": [32]}})
    assert asyncio.run(Operator(world, owner).run()) == "Failed"
    assert world.created == []
    assert conditions(world)["Accepted"] == ("False", "SpecRefused")
    status = world.sweep["status"]
    assert "max_num_batched_tokens" in status["lastError"]["message"]
    assert not is_active(status, 1)
    assert is_active(status, 2), "its spec was changed: it is looked at again"


def test_a_server_that_the_api_server_does_not_take_fails_its_configs(make_world: MakeWorld, owner: Owner) -> None:
    world = make_world()
    world.broken["deployments"] = ApiError('admission webhook "x" denied the request', 403)
    assert asyncio.run(Operator(world, owner).run()) == "Failed"
    assert world.sweep["status"]["lastError"]["reason"] == "PodRefused"
    assert world.sweep["status"]["counts"]["failed"] == 2


def test_a_canary_that_is_not_taken_ends_the_sweep(make_world: MakeWorld, owner: Owner) -> None:
    world = make_world()
    world.broken["jobs"] = ApiError("Job is invalid: spec.template", 422)
    assert asyncio.run(Operator(world, owner).run()) == "Failed"
    assert conditions(world)["PreflightPassed"] == ("False", "PodRefused")


def test_an_object_of_somebody_else_is_left_alone(make_world: MakeWorld, owner: Owner, trial: Any) -> None:
    world = make_world()
    name = names.server_name(owner, trial)
    stranger = {"kind": "Deployment", "metadata": {"name": name, "namespace": "ns", "labels": {}}}
    world.objects["deployments", name] = stranger
    operator = Operator(world, owner)

    async def some() -> None:
        for _ in range(12):
            operator.watch()
            await operator.look()
            world.work()

    with pytest.raises(KeyError, match="spec"):  # the world's controllers stumble over it; the driver does not
        asyncio.run(some())
    assert world.objects["deployments", name] == stranger


def test_what_the_operator_tells_of_itself(make_world: MakeWorld, owner: Owner) -> None:
    world = make_world()
    operator = Operator(world, owner)
    asyncio.run(operator.run())
    text = generate_latest(operator.kit.metrics.registry).decode()
    assert 'goodput_trials_ended_total{namespace="ns",reason="Ended"} 2.0' in text
    assert 'goodput_actions_total{action="StartServer",outcome="success"} 2.0' in text
    assert 'goodput_sweep_cells{namespace="ns",state="measured",sweep="t"} 2.0' in text
    asyncio.run(operator.driver.close())
    assert "goodput_sweep_cells{" not in generate_latest(operator.kit.metrics.registry).decode()
