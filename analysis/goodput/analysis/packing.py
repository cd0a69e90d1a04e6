"""Documents that may be too large for a ConfigMap (1 MiB): compressed above a limit, read either way."""

from __future__ import annotations

from typing import Final

import zstandard

PLAIN_BYTES: Final = 256 << 10
"""What is smaller stays readable for people."""
_MAGIC: Final = b"\x28\xb5\x2f\xfd"  # RFC 8878, 3.1.1: no JSON begins like this


def pack(data: bytes) -> bytes:
    """The bytes as they are, or compressed where they are many."""
    return data if len(data) <= PLAIN_BYTES else zstandard.ZstdCompressor(level=10).compress(data)


def unpack(data: bytes) -> bytes:
    """What was packed."""
    return zstandard.ZstdDecompressor().decompress(data) if data.startswith(_MAGIC) else data
