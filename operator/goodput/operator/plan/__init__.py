"""The planner: one policy per file, `plan` on top. Imports no driver, no Kubernetes, no clock."""

from goodput.operator.plan.core import Plan, plan

__all__ = ["Plan", "plan"]
