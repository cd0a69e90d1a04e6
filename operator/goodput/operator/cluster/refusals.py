"""Objects that the API server does not take: told to the planner as failures, so that nothing is asked for forever.

Kept in memory only: after a restart the same is asked for and refused again.
"""

from __future__ import annotations

from typing import Final

from goodput.operator import actions
from goodput.operator.actions import Action
from goodput.operator.cluster import classify_pod, names
from goodput.operator.cluster.errors import ApiError, ClusterError, NameTakenError, TemplateError
from goodput.operator.cluster.names import Owner
from goodput.operator.observed import Analysis, Failure

NAME_TAKEN_SECONDS: Final = 120.0
"""A sweep of the same name may just have been deleted: its children are gone within their grace."""
_FINAL: Final = frozenset({400, 403, 422})


class Refusals:
    """What was refused for good, by object name; analyses by generation."""

    def __init__(self) -> None:
        self.found: dict[str, Failure] = {}
        self.analyses: dict[int, Analysis] = {}
        self._since: dict[str, float] = {}

    def add(self, owner: Owner, action: Action, error: ClusterError, now: float) -> None:
        """An action failed."""
        name = _name(owner, action)
        failure = self._final(name, error, now) if name is not None else None
        if failure is None or name is None:
            return
        if isinstance(action, actions.StartAnalysis):
            told = Analysis(state="failed", since=now, block=action.block, failure=failure)
            self.analyses[action.generation] = told
        else:
            self.found[name] = failure

    def drop(self, owner: Owner, action: Action) -> None:
        """An action was carried out."""
        name = _name(owner, action)
        if name is not None:
            self.found.pop(name, None)
            self._since.pop(name, None)

    def _final(self, name: str, error: ClusterError, now: float) -> Failure | None:
        if isinstance(error, NameTakenError):
            taken = now - self._since.setdefault(name, now) > NAME_TAKEN_SECONDS
            return Failure("PodRefused", str(error)) if taken else None
        if isinstance(error, TemplateError):
            return Failure("PodRefused", str(error))
        if isinstance(error, ApiError) and error.status in _FINAL:
            return classify_pod.not_created(str(error))[0]
        return None


def _name(owner: Owner, action: Action) -> str | None:
    match action:
        case actions.StartServer(trial):
            return names.server_name(owner, trial)
        case actions.StartRunner(trial):
            return names.runner_name(owner, trial)
        case actions.StartCanary():
            return names.canary_name(owner)
        case actions.StartAnalysis():
            return names.analysis_name(owner, action.generation)
    return None
