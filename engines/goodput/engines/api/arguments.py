"""The part of the command line that every engine's server has, in vLLM's spelling."""

import argparse
import re
from collections.abc import Sequence

_UNITS = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def human_int(text: str) -> int:
    """An integer, also as vLLM writes large ones: 8k is 8000, 8K is 8192, 1.5k is 1500."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kmgKMG]?)", text.strip())
    if match is None or ("." in match[1] and not match[2]):
        raise argparse.ArgumentTypeError(f"invalid int value: {text!r}")
    return int(float(match[1]) * _UNITS[match[2]]) if match[2] else int(match[1])


def model_len(text: str) -> int | None:
    """A context length; None for vLLM's ``auto`` and ``-1``: as long as the model allows."""
    return None if text.strip() in ("auto", "-1") else human_int(text)


def base_parser(program: str, model_help: str) -> argparse.ArgumentParser:
    """A parser with the flags that all engines have."""
    root = argparse.ArgumentParser(prog=program, allow_abbrev=False)
    flag = root.add_argument
    flag("model_tag", nargs="?", metavar="MODEL", help=model_help)
    flag("--model", help="the same as a flag")
    flag("--served-model-name", nargs="+", help="name in requests and metrics (the first counts)")
    flag("--host", default="0.0.0.0")  # noqa: S104  # a server in a pod is reached from outside, as vLLM's is
    flag("--port", type=int, default=8000)
    flag("--api-key", nargs="+", default=[], help="tokens that /v1 asks for")
    flag("--shutdown-timeout", type=int, default=0, help="seconds for open requests after SIGTERM")
    flag("--seed", type=int, default=0)
    flag("--max-model-len", type=model_len)
    return root


def parse(root: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """Reads the command line; `--some_flag` means `--some-flag`, as for vLLM. Exits with 2 on an error."""
    namespace = root.parse_args([_dashed(argument) for argument in arguments])
    if namespace.model and namespace.model_tag and namespace.model != namespace.model_tag:
        root.error("the model is given twice, as an argument and as --model, with different names")
    namespace.model = namespace.model or namespace.model_tag
    if not namespace.model:
        root.error("a model is needed, as the first argument or as --model")
    return namespace


def _dashed(argument: str) -> str:
    if not argument.startswith("--"):
        return argument
    name, sign, value = argument.partition("=")
    return name.replace("_", "-") + sign + value
