"""What prompts have in common with earlier ones, in whole blocks: what a prefix cache may hit (pure)."""

from __future__ import annotations

BLOCK_TOKENS = 16  # vLLM's block size: shorter beginnings are never cached
_BLOCK_BYTES = 4 * BLOCK_TOKENS  # ids as uint32


class Beginnings:
    """Remembers the beginnings of all prompts, block by block, as vLLM hashes them: each with all before it.

    Args:
        depth: blocks of a prompt that are remembered; None: all.
    """

    def __init__(self, depth: int | None = None) -> None:
        self._depth = depth
        self._seen: set[int] = set()

    def shared(self, ids: bytes) -> int:
        """Tokens at the prompt's beginning that an earlier prompt began with, in whole blocks. Remembers it.

        The last token is always computed, so a prompt shares less than its length.

        Args:
            ids: as uint32.
        """
        blocks = len(ids) // _BLOCK_BYTES
        if self._depth is not None:
            blocks = min(blocks, self._depth)
        usable = (len(ids) // 4 - 1) // BLOCK_TOKENS
        found = key = 0
        known = True
        for block in range(blocks):
            key = hash((key, ids[block * _BLOCK_BYTES : (block + 1) * _BLOCK_BYTES]))
            known = known and key in self._seen
            if known:
                found = block + 1
            else:
                self._seen.add(key)
        return min(found, usable) * BLOCK_TOKENS
