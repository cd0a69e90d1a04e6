"""A server's log, as vLLM writes it."""

import logging
import sys


def log_to_stdout() -> None:
    """Everything from INFO on goes to stdout, a line each, with level, time and place."""
    logging.basicConfig(
        level=logging.INFO,
        stream=sys.stdout,
        format="%(levelname)s %(asctime)s [%(module)s.py:%(lineno)d] %(message)s",
        datefmt="%m-%d %H:%M:%S",
    )
