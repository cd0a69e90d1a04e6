"""CUDA graphs: the sizes that vLLM captures, and the size that a step is padded to.

Source: vLLM 0.32.0, `VllmConfig._set_cudagraph_sizes`.
"""

from goodput.engines.simulated.config import SchedulerConfig


def capture_sizes(device_limit: int, scheduler: SchedulerConfig) -> tuple[int, ...]:
    """Tokens per step for which a graph is captured, rising; none where the device limit is 0.

    They are 1, 2, 4, multiples of 8 below 256, multiples of 16 from there, up to the least of the device's
    limit, twice the sequences and the token budget; also the budget and the sequences where they fit.
    """
    largest = min(device_limit, 2 * scheduler.max_num_seqs, scheduler.max_num_batched_tokens)
    sizes = {1, 2, 4, *range(8, 256, 8), *range(256, largest + 1, 16)}
    sizes |= {scheduler.max_num_batched_tokens, scheduler.max_num_seqs}
    return tuple(sorted(size for size in sizes if size <= largest))


def padded_tokens(sizes: tuple[int, ...]) -> list[int]:
    """Tokens computed, by tokens scheduled from 0 to the largest size; bigger steps run without a graph."""
    padded = [0]
    for size in sizes:
        padded += [size] * (size + 1 - len(padded))
    return padded
