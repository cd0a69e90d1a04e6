"""A sweep as it is simulated: the same configs, loads, blocks and seeds, in a folder of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from goodput.operator.sweep import Sweep

NAMESPACE = "virtual"


def virtual(sweep: Sweep, profiles: Mapping[str, str]) -> Sweep:
    """Synthetic whatever its engines are; another profile makes another folder."""
    named = "\x1f".join(f"{engine}={profile}" for engine, profile in sorted(profiles.items()))
    uid = hashlib.sha256(f"{sweep.uid}\x1f{named}".encode()).hexdigest()[:8]
    return replace(sweep, namespace=NAMESPACE, uid=uid, folder=f"{NAMESPACE}.{sweep.name}.{uid}", evidence="synthetic")
