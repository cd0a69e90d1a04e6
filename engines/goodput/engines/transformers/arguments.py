"""The command line of the baseline."""

import argparse
from collections.abc import Sequence

from goodput.engines.api.arguments import base_parser
from goodput.engines.api.arguments import parse as parse_with

#: As vLLM spells them.
DTYPES = ("auto", "bfloat16", "float", "float16", "float32", "half")


def parser() -> argparse.ArgumentParser:
    """All flags. There is no batch, so vLLM's flags for one are unknown here, on purpose."""
    root = base_parser("goodput-engine-transformers", "name on the model hub, or a folder")
    flag = root.add_argument
    flag("--revision", help="branch, tag or commit of the model")
    flag("--dtype", choices=DTYPES, default="auto", help="of weights and activations; auto: the checkpoint's own")
    flag(
        "--trust-remote-code",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="run code that the model's repository brings",
    )
    own = root.add_argument_group("baseline only")
    own.add_argument("--device", default="auto", help="cpu, cuda, cuda:1; auto: cuda where there is one")
    own.add_argument("--attn-implementation", default="auto", help="sdpa, eager, flash_attention_2; auto: the model's")
    return root


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Reads the command line. Exits with 2 on an error."""
    return parse_with(parser(), arguments)
