"""Which table of flags belongs to an engine: by the version in its image's tag, else the nearest that is known."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import resources

from goodput.operator.spec.engine import EngineSpec
from goodput.operator.spec.flagtable import FlagTable, table

Version = tuple[int, int]

_TAG = re.compile(r":v?(\d+)\.(\d+)(?=[.\-+_a-z]|$)[^/:@]*(?:@[^/@]+)?$")
_FILE = re.compile(r"vllm-(\d+)\.(\d+)\.yaml")


def image_version(image: str | None) -> Version | None:
    """Major and minor version in an image's tag (``vllm/vllm-openai:v0.32.0``); None where the tag has none."""
    found = _TAG.search(image or "")
    return (int(found[1]), int(found[2])) if found else None


@lru_cache
def known_versions() -> tuple[Version, ...]:
    """The vLLM versions whose flags are known, ascending."""
    names = (entry.name for entry in (resources.files("goodput.operator.spec") / "flags").iterdir())
    return tuple(sorted((int(found[1]), int(found[2])) for name in names if (found := _FILE.fullmatch(name))))


def table_version(engine: EngineSpec) -> Version:
    """The known vLLM version nearest to the engine's; the newest where the image does not say."""
    version = image_version(engine.image)
    if version is None:
        return known_versions()[-1]
    return min(reversed(known_versions()), key=lambda known: (abs(known[0] - version[0]), abs(known[1] - version[1])))


def flags_of(engine: EngineSpec) -> FlagTable:
    """The flags that the engine's version knows."""
    if engine.kind != "vllm":
        return table(engine.kind)
    major, minor = table_version(engine)
    return table("vllm", f"{major}.{minor}")


def version_warning(engine: EngineSpec) -> str | None:
    """Why the engine's flags are checked against another version's; None where its own is known."""
    if engine.kind != "vllm":
        return None
    version, used = image_version(engine.image), table_version(engine)
    if version == used:
        return None
    checked = f"its flags are checked against vLLM {used[0]}.{used[1]}"
    if version is None:
        where = f"image {engine.image} has no version in its tag" if engine.image else "no image names its version"
        return f"engine {engine.name}: {where}: {checked}"
    return f"engine {engine.name}: the flags of vLLM {version[0]}.{version[1]} are not known: {checked}"
