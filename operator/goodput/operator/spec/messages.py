"""The message table: every rule of ours that both the API server (CEL) and the command line enforce.

The CRD's rules are rendered from this table, and the Python checks take their words from it, so that a user
reads the same sentence at both doors.
"""

from __future__ import annotations

from goodput.operator.spec.rule import Rule, positive
from goodput.operator.spec.workloadrules import WORKLOAD_RULES

_FLAG_KEY = "'^[a-z][a-z0-9_]*([.][a-z0-9_]+)*$'"
_SNAKE = ("flags are written in snake_case", "write max_num_seqs for --max-num-seqs")


def _immutable(at: str, name: str, *, optional: bool) -> Rule:
    new, old = f"self.{name}", f"oldSelf.{name}"
    cel = f"has({new}) == has({old}) && (!has({new}) || {new} == {old})" if optional else f"{new} == {old}"
    return Rule(
        id=f"immutable:{at}.{name}",
        at=at,
        field=f"{at}.{name}",
        cel=cel,
        message="cannot be changed once the sweep exists",
        fix="create a new BenchmarkSweep with another name",
    )


SHAPE_RULES = (
    Rule(
        "name-length",
        "",
        "metadata.name",
        "size(self.metadata.name) <= 40",
        "must be at most 40 characters",
        "shorten it: the names of its pods are built from it",
    ),
    Rule(
        "grid-or-list",
        "spec.configs",
        "spec.configs",
        "!(has(self.grid) && has(self.list))",
        "grid and list exclude each other",
        "keep one of them",
    ),
    Rule(
        "flag-name:args",
        "spec.engines[]",
        "spec.engines[].args",
        f"!has(self.args) || self.args.all(k, k.matches({_FLAG_KEY}))",
        *_SNAKE,
    ),
    Rule(
        "flag-name:grid",
        "spec.configs",
        "spec.configs.grid",
        f"!has(self.grid) || self.grid.all(k, k.matches({_FLAG_KEY}))",
        *_SNAKE,
    ),
    Rule(
        "flag-name:list",
        "spec.configs",
        "spec.configs.list",
        f"!has(self.list) || self.list.all(c, c.all(k, k.matches({_FLAG_KEY})))",
        *_SNAKE,
    ),
    Rule(
        "args-and-grid",
        "spec",
        "spec.engines[].args",
        "!has(self.configs) || !has(self.configs.grid) || "
        "self.engines.all(e, !has(e.args) || e.args.all(k, !(k in self.configs.grid)))",
        "has a flag that configs.grid varies too",
        "remove it from args, or from the grid",
    ),
    Rule(
        "evidence",
        "spec",
        "spec.engines[].kind",
        "self.engines.all(e, e.kind == 'simulated') || !self.engines.exists(e, e.kind == 'simulated')",
        "simulated (synthetic) and real engines cannot be compared",
        "write one sweep for each",
    ),
    Rule(
        "image",
        "spec.engines[]",
        "spec.engines[].image",
        "!(self.kind in ['vllm', 'transformers']) || has(self.image)",
        "is required in a cluster for kinds vllm and transformers",
        "name the image, such as vllm/vllm-openai:v0.32.0",
    ),
    Rule(
        "profile",
        "spec.engines[]",
        "spec.engines[].profile",
        "!has(self.profile) || self.kind == 'simulated'",
        "is for kind simulated only",
        "remove it",
    ),
    Rule(
        "external",
        "spec.engines[]",
        "spec.engines[].external",
        "has(self.external) == (self.kind == 'external')",
        "belongs to kind external, and is required there",
        "give its url, or change the kind",
    ),
    Rule(
        "external-only",
        "spec.engines[]",
        "spec.engines[].external",
        "self.kind != 'external' || !(has(self.image) || has(self.podTemplate) || has(self.runtimeClassName) || "
        "(has(self.args) && size(self.args) > 0) || (has(self.env) && size(self.env) > 0))",
        "is a server that is not started: nothing else can be set for it",
        "remove image, args, env, resources and settings of a pod; set flags where the server is started",
    ),
    Rule(
        "env",
        "spec.engines[].env[]",
        "spec.engines[].env[].valueFrom",
        "has(self.value) != has(self.valueFrom)",
        "exactly one of value and valueFrom is needed",
        "keep one of them",
    ),
    Rule(
        "compile-cache",
        "spec.engines[].compileCache",
        "spec.engines[].compileCache.claimName",
        "has(self.claimName) == (self.mode != 'none')",
        "belongs to modes shared and prime, and is required there",
        "name a PersistentVolumeClaim, or set mode none",
    ),
    Rule(
        "model-cache",
        "spec.model.cache",
        "spec.model.cache",
        "!(has(self.claimName) && has(self.create))",
        "claimName and create exclude each other",
        "keep one of them",
    ),
    *WORKLOAD_RULES,
    Rule(
        "slo-needed",
        "spec",
        "spec.slo",
        "has(self.slo.ttft) || has(self.slo.tpot) || has(self.slo.itl) || has(self.slo.e2e) || "
        "self.objective.name in ['outputThroughput', 'makespan']",
        "the objective needs at least one of ttft, tpot, itl and e2e",
        "write {ttft: 500ms, tpot: 20ms}",
    ),
    Rule(
        "blocks",
        "spec.plan.blocks",
        "spec.plan.blocks.max",
        "!has(self.max) || self.max >= self.min",
        "must not be smaller than min",
        "raise max or lower min",
    ),
    *(positive("spec.slo", name, "500ms") for name in ("ttft", "tpot", "itl", "e2e")),
    positive("spec.engines[]", "startupTimeout", "20m"),
    positive("spec.budget", "deadline", "8h"),
)

CHANGE_RULES = (
    _immutable("spec", "model", optional=False),
    _immutable("spec", "engines", optional=False),
    _immutable("spec", "configs", optional=True),
    _immutable("spec", "workload", optional=False),
    _immutable("spec", "slo", optional=False),
    _immutable("spec", "objective", optional=False),
    _immutable("spec", "runner", optional=False),
    _immutable("spec", "scheduling", optional=False),
    _immutable("spec.plan", "strategy", optional=False),
    _immutable("spec.plan", "indifference", optional=False),
    _immutable("spec.plan", "retries", optional=False),
    _immutable("spec.plan", "sentinel", optional=False),
    _immutable("spec.plan", "outputCheck", optional=False),
    _immutable("spec.plan.blocks", "min", optional=False),
    _immutable("spec.results", "uri", optional=False),
    _immutable("spec.results", "endpoint", optional=True),
    _immutable("spec.results", "region", optional=True),
    _immutable("spec.results", "serviceAccountName", optional=True),
    Rule(
        "cancel",
        "spec",
        "spec.cancel",
        "!oldSelf.cancel || self.cancel",
        "cannot be taken back",
        "create a new BenchmarkSweep with another name",
    ),
)

RULES = {rule.id: rule for rule in (*SHAPE_RULES, *CHANGE_RULES)}
