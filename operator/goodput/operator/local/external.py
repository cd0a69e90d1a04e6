"""A server that runs already: nothing is started, and nothing is stopped but our use of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from goodput.operator.local.errors import StartError
from goodput.operator.observed import Failure, Server
from goodput.operator.spec.external import secret_variable
from goodput.operator.spec.models import EngineSpec
from goodput.runner.contract import ServerFacts


class ExternalServer:
    """Has the same interface as a `LocalServer`; ``failure``: what is missing here to use it."""

    child = None
    ready = None  # nobody started it

    def __init__(self, url: str, since: float, failure: Failure | None = None) -> None:
        self.url, self.since, self.failure = url, since, failure
        self._dropped = False

    def look(self) -> Server | None:
        """The server now; None once it is not used any more."""
        if self._dropped:
            return None
        state = "ready" if self.failure is None else "ended"
        return Server(state=state, since=self.since, failure=self.failure, url=self.url)  # type: ignore[arg-type]

    def stop(self) -> None:
        """Use it no more."""
        self._dropped = True


def facts(engine: EngineSpec, url: str, order: int, environment: Mapping[str, str] = os.environ) -> ServerFacts:
    """What the runner needs to know: names of variables and files, never a key.

    Raises:
        StartError: a variable or a file is missing.
    """
    assert engine.external is not None
    key, authority = engine.external.api_key_secret_ref, engine.external.ca_secret_ref
    key_variable = None if key is None else secret_variable(key)
    if key_variable is not None and not environment.get(key_variable):
        raise StartError(f"the environment variable {key_variable} (external.apiKeySecretRef) holds no API key: set it")
    ca_file = None
    if authority is not None:
        variable = secret_variable(authority)
        ca_file = environment.get(variable)
        if not ca_file or not Path(ca_file).is_file():
            message = f"the environment variable {variable} (external.caSecretRef) names no file"
            raise StartError(f"{message}: set it to the path of the authority's certificate (PEM)")
        ca_file = str(Path(ca_file).resolve())
    return ServerFacts(url=url, external=True, order=order, api_key_env=key_variable, ca_file=ca_file)
