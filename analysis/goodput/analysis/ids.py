"""Identity of configs, load points and seeds: the same inputs give the same ids wherever a sweep runs.

A config's id covers the engine's name and its effective flags; a load's id covers what is sent. Image,
model, SLO and seed are in neither, so that records can be joined and judged again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from decimal import Decimal

ID_LENGTH = 10


def text(value: object) -> str:
    """A value as ids, flags and tables spell it: shortest decimal (``2``, not ``2.0``), booleans lower case."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        shortest = Decimal(repr(value)).normalize()
        return format(shortest, "f")
    return str(value)


def canonical(document: Mapping[str, object]) -> bytes:
    """The bytes that are hashed: JSON, sorted keys, no spaces, leaf values as `text`."""
    return json.dumps(_leaves(document), sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def digest(document: Mapping[str, object]) -> str:
    """First ten hex digits of SHA-256 over the canonical form."""
    return hashlib.sha256(canonical(document)).hexdigest()[:ID_LENGTH]


def config_id(engine: str, flags: Mapping[str, object]) -> str:
    """Id of one point on the server axis: the engine's name and its effective flags (snake_case keys)."""
    return digest({"engine": engine, "flags": dict(flags)})


def seed(workload_seed: int, block: str, load_id: str, *, salt: str = "") -> int:
    """Seed of all random draws of a load point in a block: 63 bits of SHA-256.

    Neither config nor attempt enters, so every config of a block sees the same arrivals, lengths and prompts.
    ``salt`` holds the sweep's UID and the attempt for engines whose cache outlives the sweep.
    """
    message = "\x1f".join([str(workload_seed), block, load_id, *([salt] if salt else [])]).encode()
    return int.from_bytes(hashlib.sha256(message).digest()[:8], "big") >> 1


def _leaves(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _leaves(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_leaves(item) for item in value]
    return text(value)
