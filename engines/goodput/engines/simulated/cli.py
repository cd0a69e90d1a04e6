"""`goodput-engine-simulated MODEL [flags]`: starts the simulated server in the foreground."""

import logging
import sys
from collections.abc import Sequence

from goodput.engines.api.logs import log_to_stdout
from goodput.engines.errors import KvCacheTooSmallError, ProfileError
from goodput.engines.simulated import arguments, info
from goodput.engines.simulated.profile import load_profile

_log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the server until SIGTERM or SIGINT.

    Exit codes: 0 after a stop by signal; 1 where vLLM's config or its engine start would fail (a traceback
    with vLLM's message is on stderr); 2 for a bad command line.
    """
    namespace = arguments.parse(sys.argv[1:] if argv is None else argv)
    log_to_stdout()
    try:
        profile = load_profile(namespace.profile)
    except ProfileError as error:
        arguments.parser().error(str(error))
    _log.warning(info.NOTICE)
    try:
        config = arguments.resolve(namespace, profile)
    except KvCacheTooSmallError as error:
        raise RuntimeError(
            "Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': 1}"
        ) from error
    from goodput.engines.simulated.serve import serve  # noqa: PLC0415  # half of the start is this import

    serve(namespace, config, profile)
