"""KV-cache blocks: allocation, sharing and reuse as in vLLM V1's block pool.

Free blocks wait in a queue. Blocks without content that could be found again are put to its front and
used first; blocks with a hash go to its end and stay findable until they are taken for something else
(vLLM 0.32, v1/core/block_pool.py). vLLM keeps one block as a null block, so usable are N - 1 of N.
"""

from collections import OrderedDict
from collections.abc import Iterable


class BlockPool:
    """Reference-counted blocks, numbered from 0, with a prefix cache.

    Args:
        num_blocks: usable blocks.
        caching: whether full blocks can be found by their hash.
    """

    def __init__(self, num_blocks: int, *, caching: bool) -> None:
        self.num_blocks = num_blocks
        self._caching = caching
        self._references = [0] * num_blocks
        self._key_of: list[int | None] = [None] * num_blocks
        self._block_of: dict[int, int] = {}
        self._free: OrderedDict[int, None] = OrderedDict.fromkeys(range(num_blocks))

    @property
    def num_free(self) -> int:
        """Blocks that could be taken now, findable ones included."""
        return len(self._free)

    @property
    def usage(self) -> float:
        """Share of blocks held by requests, 0 to 1."""
        return 1.0 - len(self._free) / self.num_blocks if self.num_blocks else 0.0

    def take(self, count: int) -> list[int]:
        """Takes `count` blocks; the caller has checked `num_free`."""
        taken = []
        for _ in range(count):
            block, _ = self._free.popitem(last=False)
            key = self._key_of[block]
            if key is not None:
                del self._block_of[key]
                self._key_of[block] = None
            self._references[block] = 1
            taken.append(block)
        return taken

    def find(self, key: int) -> int | None:
        """The block that holds the content named by `key`, or None."""
        return self._block_of.get(key)

    def is_free(self, block: int) -> bool:
        """Whether no request holds the block."""
        return self._references[block] == 0

    def share(self, blocks: Iterable[int]) -> None:
        """Adds a holder to each of the found blocks."""
        for block in blocks:
            if self._references[block] == 0:
                del self._free[block]
            self._references[block] += 1

    def publish(self, block: int, key: int) -> None:
        """Makes a full block findable. The first block with a content stays the findable one."""
        if self._caching and key not in self._block_of:
            self._block_of[key] = block
            self._key_of[block] = key

    def give_back(self, blocks: list[int]) -> None:
        """Drops one holder of each block, the last block of a request first to be reused."""
        plain = []
        for block in reversed(blocks):
            self._references[block] -= 1
            if self._references[block] > 0:
                continue
            if self._key_of[block] is None:
                plain.append(block)
            else:
                self._free[block] = None
        for block in reversed(plain):
            self._free[block] = None
            self._free.move_to_end(block, last=False)

    def reset(self) -> bool:
        """Forgets all content; refused (False) while any block is held."""
        if len(self._free) != self.num_blocks:
            return False
        self._block_of.clear()
        self._key_of = [None] * self.num_blocks
        return True
