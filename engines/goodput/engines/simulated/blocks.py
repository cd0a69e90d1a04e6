"""KV-cache blocks: allocation, sharing and reuse as in vLLM V1's block pool.

Free blocks wait in a queue. Blocks without content that could be found again are put to its front and
used first; blocks with a hash go to its end and stay findable until they are taken for something else
(vLLM 0.32, v1/core/block_pool.py). vLLM keeps one block as a null block, so usable are N - 1 of N.
"""

from collections import OrderedDict
from collections.abc import Iterable


class BlockPool:
    """Blocks numbered from 0, each with a number of holders, and a prefix cache.

    Args:
        num_blocks: usable blocks.
        caching: whether full blocks can be found by their hash.
    """

    def __init__(self, num_blocks: int, *, caching: bool) -> None:
        self.num_blocks = num_blocks
        self._caching = caching
        self._more_holders: dict[int, int] = {}  # beyond the first
        self._key_of: dict[int, int] = {}
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
        pop = self._free.popitem
        taken = [pop(False)[0] for _ in range(count)]  # the oldest; a keyword is dearer
        if self._key_of:
            for block in taken:
                key = self._key_of.pop(block, None)
                if key is not None:
                    del self._block_of[key]
        return taken

    def find(self, key: int) -> int | None:
        """The block that holds the content named by `key`, or None."""
        return self._block_of.get(key)

    def is_free(self, block: int) -> bool:
        """Whether no request holds the block."""
        return block in self._free

    def share(self, blocks: Iterable[int]) -> None:
        """Adds a holder to each of the found blocks."""
        for block in blocks:
            if block in self._free:
                del self._free[block]
            else:
                self._more_holders[block] = self._more_holders.get(block, 0) + 1

    def publish(self, block: int, key: int) -> None:
        """Makes a full block findable. The first block with a content stays the findable one."""
        if self._caching and key not in self._block_of:
            self._block_of[key] = block
            self._key_of[block] = key

    def give_back(self, blocks: list[int], *, private: int = 0) -> None:
        """Drops one holder of each block, the last block of a request first to be reused.

        Args:
            blocks: in the request's order.
            private: so many of the first hold content that could have been found, and whose key nobody will ask
                for again, so that it was never made. They queue as findable blocks do.
        """
        if self._more_holders:
            blocks = [block for block in blocks if not self._drop_holder(block)]
        kept = blocks[:private]
        if self._key_of:
            kept += [block for block in blocks[private:] if block in self._key_of]
        kept.reverse()
        self._free.update(dict.fromkeys(kept))
        if len(kept) < len(blocks):
            for block in blocks:
                if block not in self._free:
                    self._free[block] = None
                    self._free.move_to_end(block, last=False)

    def reset(self) -> bool:
        """Forgets all content; refused (False) while any block is held."""
        if len(self._free) != self.num_blocks:
            return False
        self._block_of.clear()
        self._key_of.clear()
        return True

    def _drop_holder(self, block: int) -> bool:
        """Whether somebody still holds the block."""
        more = self._more_holders.get(block)
        if more is None:
            return False
        if more == 1:
            del self._more_holders[block]
        else:
            self._more_holders[block] = more - 1
        return True
