"""Carries out the planner's actions. Each is idempotent; one that fails is asked for again at the next look."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from goodput.operator import actions
from goodput.operator.actions import Action
from goodput.operator.cluster import bodies, memory, names
from goodput.operator.cluster.bodies import Body
from goodput.operator.cluster.errors import ApiError
from goodput.operator.cluster.kit import Kit
from goodput.operator.cluster.manifests import configmaps, runner, server, tasks
from goodput.operator.cluster.names import Owner
from goodput.operator.cluster.observe import Children
from goodput.operator.cluster.save_logs import save_logs
from goodput.operator.observed import Observed
from goodput.operator.serverlog import parse_log
from goodput.operator.sweep import Sweep, TrialId
from goodput.operator.trialplan import results_target, trial_plan
from goodput.runner.contract import CanaryInput, ServerFacts

OF_NO_USE: Final = f"{names.ROLE} in ({names.LOGS},{names.INPUT})"
OfMemory = actions.Remember | actions.Note | actions.SaveLogs | actions.DropLogs


class Executor:
    """Runs actions of one sweep and puts what the API server answers into the cache."""

    def __init__(self, kit: Kit) -> None:
        self._api = kit.api
        self._cache = kit.cache
        self._images = kit.images

    async def run(self, sweep: Sweep, action: Action, observed: Observed, children: Children) -> None:
        """Run one action. Raises `ClusterError` where it failed."""
        owner = Owner.of(sweep)
        match action:
            case actions.StartCanary():
                await self._start_canary(sweep, owner)
            case actions.StartServer(trial):
                await self._start_server(sweep, trial)
            case actions.StartRunner(trial):
                await self._start_runner(sweep, trial, observed, children)
            case actions.StartAnalysis():
                await self._start_analysis(sweep, owner, action)
            case actions.StopRunner(trial):
                await self._patch("Job", owner, names.runner_name(owner, trial), {"spec": {"parallelism": 0}})
            case actions.StopServer(trial) if sweep.address(trial.config) is not None:
                await self._use(owner, trial, None)
            case actions.StopServer(trial):
                await self._delete("Deployment", owner, names.server_name(owner, trial))
            case actions.DropRunner(trial):
                await self._delete("Job", owner, names.runner_name(owner, trial))
            case actions.CleanUp():
                await self._clean_up(owner, children)
            case _:
                await self._keep(owner, action, children)

    async def _keep(
        self,
        owner: Owner,
        action: actions.Remember | actions.Note | actions.SaveLogs | actions.DropLogs,
        children: Children,
    ) -> None:
        """What is remembered of a trial."""
        match action:
            case actions.Remember(trial, order):
                await self._create(configmaps.memory(owner, trial, order))
            case actions.Note(trial):
                await self._annotate(owner, trial, memory.as_annotations(action))
            case actions.SaveLogs(trial, final):
                await save_logs(self._api, owner, trial, children)
                await self._annotate(owner, trial, {names.SAVED_LOGS: "saved" if final else "server"})
            case actions.DropLogs(trial):
                await self._api.delete("ConfigMap", owner.namespace, names.logs_name(owner, trial))
                await self._annotate(owner, trial, {names.SAVED_LOGS: "uploaded"})

    async def copy_answer(self, job: Body, answer: str) -> None:
        """Keep an analysis's answer on its Job: the pod's message goes with the pod."""
        meta = bodies.meta(job)
        found = await self._api.annotate("Job", str(meta["namespace"]), str(meta["name"]), {names.ANSWER: answer})
        self._cache.put("Job", found)

    async def _start_canary(self, sweep: Sweep, owner: Owner) -> None:
        content = CanaryInput(results=results_target(sweep), spec=sweep.document()).to_json()
        name = names.canary_name(owner)
        await self._create(configmaps.files(owner, name, names.INPUT, {tasks.CANARY_FILE: content}))
        await self._create(tasks.canary_job(sweep, image=sweep.spec.runner.image or self._images.runner))

    async def _use(self, owner: Owner, trial: TrialId, url: str | None) -> None:
        """Begin to use an external server, or end it: a note in the trial's memory, and nothing else."""
        change = {"metadata": {"annotations": {names.EXTERNAL: url}}}
        await self._patch("ConfigMap", owner, names.memory_name(owner, trial), change)

    async def _start_server(self, sweep: Sweep, trial: TrialId) -> None:
        url = sweep.address(trial.config)
        if url is not None:
            await self._use(Owner.of(sweep), trial, url)
            return
        engine = sweep.engines[sweep.by_id[trial.config].engine]
        await self._create(server.server_deployment(sweep, trial, image=engine.image or self._images.engines))

    async def _start_runner(self, sweep: Sweep, trial: TrialId, observed: Observed, children: Children) -> None:
        owner, facts = Owner.of(sweep), await self._facts(sweep, trial, observed, children)
        plan = trial_plan(sweep, trial, facts)
        change = {
            "metadata": {"annotations": {names.SERVER_POD: facts.pod_uid}},
            **configmaps.contents({names.TRIAL_FILE: plan.to_json()}),
        }
        await self._patch("ConfigMap", owner, names.memory_name(owner, trial), change)
        image = sweep.spec.runner.image or self._images.runner
        await self._create(runner.runner_job(sweep, trial, plan, image=image))

    async def _facts(self, sweep: Sweep, trial: TrialId, observed: Observed, children: Children) -> ServerFacts:
        seen, found = observed.trials[trial], observed.trials[trial].server
        if found is None or found.url is None:
            raise ApiError(f"the server of {trial.name} has no address yet")
        engine = sweep.engines[sweep.by_id[trial.config].engine]
        if engine.external is not None:
            return runner.external_facts(engine.external, found.url, seen.memory.order)
        log, pod = None, next((one for one in children.pods if bodies.uid(one) == found.pod_uid), None)
        if sweep.by_id[trial.config].kind == "vllm":
            log = parse_log(await self._api.log(pod, names.SERVER) or "") if pod is not None else None
        both = found.ready is not None and found.running is not None
        return ServerFacts(
            url=found.url,
            pod=None if pod is None else str(bodies.meta(pod).get("name")),
            pod_uid=found.pod_uid,
            image=found.image,
            image_digest=found.image_digest,
            node=found.node,
            order=seen.memory.order,
            start_seconds=(found.ready or 0.0) - (found.running or 0.0) if both else None,
            log=log,
        )

    async def _start_analysis(self, sweep: Sweep, owner: Owner, action: actions.StartAnalysis) -> None:
        name = names.analysis_name(owner, action.generation)
        files = tasks.analysis_input(sweep, action)
        await self._create(configmaps.files(owner, name, names.INPUT, files))
        image = self._images.analysis
        await self._create(tasks.analysis_job(sweep, action.generation, action.block, action.logs, image=image))

    async def _clean_up(self, owner: Owner, children: Children) -> None:
        """Delete all children; the memories last, so that a clean-up that was cut short is seen and repeated."""
        await self._api.delete_all("ConfigMap", owner.namespace, f"{names.SWEEP_UID}={owner.uid},{OF_NO_USE}")
        for kind, found in (
            ("Deployment", children.deployments),
            ("Job", children.jobs),
            ("ConfigMap", children.config_maps),
        ):
            for body in found:
                if not bodies.deleting(body):
                    await self._delete(kind, owner, str(bodies.meta(body)["name"]))

    async def _annotate(self, owner: Owner, trial: TrialId, found: Mapping[str, str]) -> None:
        change = {"metadata": {"annotations": dict(found)}}
        await self._patch("ConfigMap", owner, names.memory_name(owner, trial), change)

    async def _create(self, body: Mapping[str, Any]) -> None:
        self._cache.put(str(body["kind"]), await self._api.create(body))

    async def _patch(self, kind: str, owner: Owner, name: str, change: Mapping[str, Any]) -> None:
        self._cache.put(kind, await self._api.patch(kind, owner.namespace, name, change))

    async def _delete(self, kind: str, owner: Owner, name: str) -> None:
        await self._api.delete(kind, owner.namespace, name)
        self._cache.leaving(kind, owner.uid, name)
