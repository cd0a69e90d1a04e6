"""``best.yaml``: the recommended config, ready to be used, with how sure that is."""

from __future__ import annotations

import shlex
from typing import Any

import yaml

from goodput.analysis.result import AnalysisResult
from goodput.analysis.schema.base import SCHEMA_VERSION
from goodput.analysis.schema.planned import Config
from goodput.analysis.tables import as_number
from goodput.analysis.text_table import SYNTHETIC
from goodput.analysis.words import explain, unit


def best_yaml(result: AnalysisResult) -> bytes:
    """The document. ``best`` is null where no config meets the SLO."""
    spec, decision = result.spec, result.decision
    document = {
        "v": SCHEMA_VERSION,
        "evidence": spec.evidence,
        **({"simulated": result.simulated} if result.simulated else {}),
        "sweep": {"namespace": spec.namespace, "name": spec.name, "uid": spec.uid, "folder": spec.folder},
        "model": spec.model,
        "slo": result.slo.model_dump(exclude_none=True),
        "objective": spec.objective,
        "verdict": decision.verdict,
        "reason": decision.reason,
        "message": explain(result),
        "best": None if decision.best is None else _best(result, decision.best),
    }
    mark = f"# {SYNTHETIC}\n" if result.synthetic else ""
    return (mark + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)).encode()


def vllm_flags(config: Config) -> dict[str, Any]:
    """Effective flags as ``vllm serve --config`` takes them: kebab-case; ``no-`` before a flag that is off."""
    flags: dict[str, Any] = {}
    for name, value in sorted(config.flags.items()):
        kebab = name.replace("_", "-")
        if value in {"true", "false"}:
            flags[kebab if value == "true" else f"no-{kebab}"] = True
        else:
            number = as_number(value)
            flags[kebab] = value if number is None else number
    return flags


def _best(result: AnalysisResult, best: str) -> dict[str, Any]:
    config, score = result.configs[best], result.decision.scores[best]
    limits, against = result.interval, result.decision.against_reference
    return {
        "config": best,
        "engine": config.engine,
        "kind": config.kind,
        "swept": config.swept,
        "flags": vllm_flags(config),
        "command": shlex.join(config.command) or None,
        "score": {
            "value": score.value,
            "unit": unit(result),
            "interval": None if limits is None else list(limits),
            "blocks": min(point.blocks for point in score.chosen.values()),
        },
        "loads": [
            {
                "load": point.load,
                "shape": shape,
                **result.loads[point.load].model_dump(exclude_none=True),
                "attainment": point.attainment,
            }
            for shape, point in score.chosen.items()
        ],
        "tied_with": [result.name(name) for name in _tied(result, best)],
        "change_against_reference": None if against is None else against.change,
    }


def _tied(result: AnalysisResult, best: str) -> list[str]:
    decision = result.decision
    if decision.verdict != "tie":
        return []
    return [name for name in (decision.leader, *decision.tied) if name is not None and name != best]
