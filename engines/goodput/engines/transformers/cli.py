"""`goodput-engine-transformers MODEL [flags]`: starts the sequential baseline in the foreground."""

import sys
from collections.abc import Sequence

from goodput.engines.api.logs import log_to_stdout
from goodput.engines.errors import ArgumentError, ModelError
from goodput.engines.transformers import arguments


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the server until SIGTERM or SIGINT.

    Exit codes: 0 after a stop by signal; 1 where the model cannot be loaded or generating failed; 2 for a bad
    command line, or one that does not go with model and machine.
    """
    namespace = arguments.parse(sys.argv[1:] if argv is None else argv)
    log_to_stdout()
    try:
        from goodput.engines.transformers.serve import serve  # noqa: PLC0415  # torch takes seconds to import
    except ModuleNotFoundError as error:
        fix = "in Goodput's checkout, pip install -e '.[transformers]'"
        raise SystemExit(f"{error.name} is not installed here: {fix}") from error
    try:
        serve(namespace)
    except ArgumentError as error:
        arguments.parser().error(str(error))
    except ModelError as error:
        raise SystemExit(str(error)) from error
