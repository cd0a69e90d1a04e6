"""``trial.json`` of a trial: the same for both drivers, but for what only the driver knows of the server."""

from __future__ import annotations

from typing import Final

from goodput.analysis import ids
from goodput.analysis.schema.planned import Config, Load
from goodput.operator.plan.limits import UPLOAD_HOLD_SECONDS
from goodput.operator.sweep import LoadStep, Sweep, TrialId
from goodput.runner import expect
from goodput.runner.contract import DatasetTarget, OutputCheck, PlannedLoad, ResultsTarget, ServerFacts, TrialPlan

DEFAULT_MAX_NUM_SEQS: Final = 256
"""Where the flag is not set: vLLM's API server takes 256 on small devices, 1,024 from 70 GiB on
(``EngineArgs.get_batch_defaults``); warming up with fewer in flight than the server could take does no harm."""
WARMUP_SECONDS_OF_ARRIVALS: Final = 10.0


def results_target(sweep: Sweep) -> ResultsTarget:
    """Where the sweep's records go."""
    results = sweep.spec.results
    return ResultsTarget(uri=results.uri, endpoint=results.endpoint, region=results.region)


def dataset_target(sweep: Sweep) -> DatasetTarget | None:
    """Where the workload's file is; the store of the results tells how to reach others of its kind."""
    work, results = sweep.spec.workload, sweep.spec.results
    if work.dataset == "random" or work.dataset_uri is None:
        return None
    same = work.dataset_uri.partition("://")[0] == results.uri.partition("://")[0]
    return DatasetTarget(
        kind=work.dataset,
        uri=work.dataset_uri,
        endpoint=results.endpoint if same else None,
        region=results.region if same else None,
    )


def trial_plan(sweep: Sweep, trial: TrialId, facts: ServerFacts) -> TrialPlan:
    """The whole plan of one server lifetime.

    Seeds depend on block and load alone (common random numbers): a config or an attempt does not change what
    is sent; but an external server may have cached what was sent to it before (`_salt`). ``facts.expects`` is set
    here: every flag of the config must be resolved as asked.
    """
    spec, config = sweep.spec, sweep.by_id[trial.config]
    salt = _salt(sweep, trial)
    token_ids = spec.workload.token_id_range
    return TrialPlan(
        sweep=sweep.folder,
        evidence=sweep.evidence,
        config=config,
        block=trial.block,
        attempt=trial.attempt,
        model=spec.model.name,
        served_model=spec.model.served,
        model_revision=spec.model.revision,
        server=facts.model_copy(
            update={"expects": dict(config.flags), "gpu_metrics_url": gpu_metrics_url(sweep, config, facts.node)}
        ),
        endpoint=spec.workload.endpoint,
        dataset=dataset_target(sweep),
        token_id_range=(token_ids.first, token_ids.last + 1) if token_ids is not None else None,
        warmup_max_seconds=spec.workload.warmup.max_seconds,
        warmup_concurrency=warmup_concurrency(config, sweep.loads),
        warmup_seed=ids.seed(spec.workload.seed, trial.block, "warmup", salt=salt),
        output_check=output_check(sweep, config),
        loads=tuple(
            PlannedLoad(
                load=step.load,
                seed=ids.seed(spec.workload.seed, trial.block, step.load.id, salt=salt),
                lead_in_seconds=step.lead_in_seconds,
                drain_seconds=step.drain_seconds,
            )
            for step in sweep.loads
        ),
        slo=spec.slo.to_document(),
        results=results_target(sweep),
        deadline_seconds=sweep.trial_deadline_seconds,
        upload_hold_seconds=UPLOAD_HOLD_SECONDS,
    )


def output_check(sweep: Sweep, config: Config) -> OutputCheck | None:
    """The same prompts for all configs and blocks; external servers may not know vLLM's options."""
    if not sweep.output_check or config.kind == "external":
        return None
    return OutputCheck(seed=ids.seed(sweep.spec.workload.seed, "outputs", "prompts"))


def _salt(sweep: Sweep, trial: TrialId) -> str:
    """An external server's cache outlives sweep and attempt; one that several engines name, each of their trials."""
    address = sweep.address(trial.config)
    if address is None:
        return ""
    shared = sum(sweep.address(config.id) == address for config in sweep.configs) > 1
    return "\x1f".join([sweep.uid, str(trial.attempt), *([trial.config] if shared else [])])


def _at_once(load: Load) -> int:
    """Requests that a load may have in flight."""
    rate = expect.requests_per_second(load)
    if load.arrival == "burst":
        return load.window_requests or 0
    return load.concurrency or int((rate or 0.0) * WARMUP_SECONDS_OF_ARRIVALS)


def gpu_metrics_url(sweep: Sweep, config: Config, node: str | None) -> str | None:
    """The exporter's page for a server on that node; None where none is named, or the node is not known."""
    named = sweep.engines[config.engine].gpu_metrics
    if named is None or ("{node}" in named.url and node is None):
        return None
    return named.url.replace("{node}", node or "")


def warmup_concurrency(config: Config, loads: tuple[LoadStep, ...]) -> int:
    """min(max_num_seqs, the highest planned concurrency or burst, or ten seconds of the highest rate); at least 1.

    The Transformers baseline serves one request at a time: more would only wait.
    """
    if config.kind == "transformers":
        return 1
    asked = max(_at_once(step.load) for step in loads)
    return max(1, min(int(config.flags.get("max_num_seqs", DEFAULT_MAX_NUM_SEQS)), asked))
