"""Which model a server on this machine loads: a hash over a folder's files, or the hub snapshot in the cache."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

HEADER_BYTES = 100 << 20
"""More than any header of safetensors (the format's own limit)."""
_SMALL = ("config.json", "generation_config.json", "tokenizer_config.json", "*.index.json")


def content_hash(name: str) -> str | None:
    """SHA-256 over a model folder: config and weights index, and of each safetensors file name, size and header.

    The header has every tensor's name, type, shape and place, but not its values: two trainings of one architecture
    with equal configs look the same, and so the label says what was hashed. None where the name is no folder.
    """
    folder = Path(name)
    if not (folder / "config.json").is_file():
        return None
    digest = hashlib.sha256()
    for path in sorted({path for pattern in _SMALL for path in folder.glob(pattern)}):
        digest.update(f"{path.name}\0".encode() + path.read_bytes())
    for path in sorted(folder.glob("*.safetensors")):
        digest.update(f"{path.name}\0{path.stat().st_size}\0".encode() + _header(path))
    return f"config, index and safetensors headers sha256:{digest.hexdigest()}"


def snapshot(name: str, revision: str | None, environment: Mapping[str, str]) -> str | None:
    """The commit of a hub model that the cache has for this revision; None where it has none."""
    found = re.search(r"/snapshots/([0-9a-f]{40})\b", name)
    if found is not None:
        return found[1]
    folder = _hub(environment) / f"models--{name.replace('/', '--')}"
    reference = folder / "refs" / (revision or "main")
    if reference.is_file():
        return reference.read_text(encoding="utf-8").strip() or None
    known = revision is not None and (folder / "snapshots" / revision).is_dir()
    return revision if known else None


def _hub(environment: Mapping[str, str]) -> Path:
    """Where huggingface_hub keeps models."""
    home = environment.get("HF_HOME") or Path.home() / ".cache" / "huggingface"
    return Path(environment.get("HF_HUB_CACHE") or Path(home) / "hub")


def _header(path: Path) -> bytes:
    """The JSON header of a safetensors file: eight bytes of length, then the text."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        return file.read(min(length, HEADER_BYTES))
