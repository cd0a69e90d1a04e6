from goodput.engines.simulated.blocks import BlockPool


def test_taken_blocks_come_back() -> None:
    pool = BlockPool(4, caching=True)
    taken = pool.take(3)
    assert (len(set(taken)), pool.num_free, pool.usage) == (3, 1, 0.75)
    pool.give_back(taken)
    assert (pool.num_free, pool.usage) == (4, 0.0)


def test_published_content_is_found_until_its_block_is_reused() -> None:
    pool = BlockPool(2, caching=True)
    (block, _) = taken = pool.take(2)
    pool.publish(block, 77)
    pool.give_back(taken)
    assert pool.find(77) == block
    assert pool.is_free(block)
    pool.take(1)  # the block without content is used first
    assert pool.find(77) == block
    pool.take(1)
    assert pool.find(77) is None


def test_a_shared_block_is_free_when_its_last_holder_leaves() -> None:
    pool = BlockPool(2, caching=True)
    taken = pool.take(1)
    pool.publish(taken[0], 5)
    pool.share(taken)
    pool.give_back(taken)
    assert pool.num_free == 1
    pool.give_back(taken)
    assert pool.num_free == 2


def test_the_end_of_a_prefix_is_evicted_before_its_start() -> None:
    pool = BlockPool(3, caching=True)
    taken = pool.take(3)
    for key, block in enumerate(taken):
        pool.publish(block, key)
    pool.give_back(taken)
    pool.take(2)
    assert [pool.find(key) for key in range(3)] == [taken[0], None, None]


def test_reset_is_refused_while_blocks_are_held() -> None:
    pool = BlockPool(2, caching=True)
    taken = pool.take(1)
    pool.publish(taken[0], 9)
    assert not pool.reset()
    pool.give_back(taken)
    assert pool.reset()
    assert pool.find(9) is None
    assert pool.num_free == 2


def test_without_caching_nothing_is_found() -> None:
    pool = BlockPool(1, caching=False)
    pool.publish(pool.take(1)[0], 3)
    assert pool.find(3) is None
