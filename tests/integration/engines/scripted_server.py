"""The baseline around a model without weights: `python -m … PORT SCRIPT SHUTDOWN_TIMEOUT`."""

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from tests.unit.engines.scripted_model import ScriptedModel

from goodput.engines.api.process import run, stop_signals
from goodput.engines.simulated.tokens import EOS
from goodput.engines.transformers.server import BaselineServer

SCRIPTS: dict[str, Sequence[int]] = {
    "counting": range(300, 900),
    "ending": [300, 301, EOS, 302, 303],
    "failing": [300, -1],
}


class PacedModel(ScriptedModel):
    """Takes a few milliseconds for each token, as a model does."""

    def generate(self, prompt: Sequence[int], *, on_token: Callable[[int], None], **asked: Any) -> None:
        def paced(token: int) -> None:
            time.sleep(0.004)
            on_token(token)

        super().generate(prompt, on_token=paced, **asked)


async def _main(port: int, script: str, shutdown_timeout: int) -> int:
    stop = stop_signals()
    server = BaselineServer(
        PacedModel(SCRIPTS[script]), name="scripted", served_name="toy", on_failure=stop.set, revision="main"
    )
    await run(server, name="test server", host="127.0.0.1", port=port, shutdown_timeout=shutdown_timeout, stop=stop)
    return int(server.queue.failed)


if __name__ == "__main__":
    sys.exit(asyncio.run(_main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))))
