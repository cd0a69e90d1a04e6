"""Data-sheet facts of devices and shapes of models, for what no table says."""

from dataclasses import dataclass

from goodput.engines.simulated.profile import Memory

BF16_BYTES = 2
MIB = 1 << 20


@dataclass(frozen=True)
class Shape:
    """A dense transformer with grouped queries and a gated MLP."""

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_size: int
    vocabulary: int

    @property
    def layer_parameters(self) -> int:
        """Weights of one layer's matrices."""
        attention = self.hidden * self.head_size * (2 * self.heads + 2 * self.kv_heads)
        return attention + 3 * self.hidden * self.intermediate

    @property
    def head_bytes(self) -> int:
        """Weights of the output layer in BF16."""
        return self.vocabulary * self.hidden * BF16_BYTES

    @property
    def weights_bytes(self) -> int:
        """All weights in BF16, with an embedding of its own."""
        return self.layers * self.layer_parameters * BF16_BYTES + 2 * self.head_bytes

    @property
    def kv_bytes_per_token(self) -> int:
        """Keys and values of one token in BF16."""
        return 2 * self.layers * self.kv_heads * self.head_size * BF16_BYTES

    @property
    def attention_flop_per_pair(self) -> int:
        """Operations for one query and one key: scores and sum of values, two operations per product."""
        return 4 * self.layers * self.heads * self.head_size


@dataclass(frozen=True)
class Device:
    """Memory in bytes, bytes per second, and dense BF16 operations per second with FP32 sums."""

    name: str
    memory_bytes: int
    bandwidth: float
    peak: float

    def memory(self, shape: Shape) -> Memory:
        """For one device that holds the whole model.

        Activations are an estimate; with these graphs an RTX 4090 has the 2,588 blocks that vLLM 0.19 found.
        """
        return Memory(
            total_bytes=self.memory_bytes,
            weights_bytes=shape.weights_bytes,
            activation_bytes_per_token=150_000,
            graphs_bytes=930_000_000,
            kv_bytes_per_token=shape.kv_bytes_per_token,
        )


LLAMA_3_8B = Shape(32, 4096, 14336, 32, 8, 128, 128256)
LLAMA_2_7B = Shape(32, 4096, 11008, 32, 32, 128, 32000)

A100 = Device("NVIDIA A100-SXM4-80GB", 81920 * MIB, 2.039e12, 312e12)
H100 = Device("NVIDIA H100 80GB HBM3", 81559 * MIB, 3.35e12, 989e12)
RTX_4090 = Device("NVIDIA GeForce RTX 4090", 25250627584, 1.008e12, 165e12)
RTX_PRO_6000 = Device("NVIDIA RTX PRO 6000 Blackwell Server Edition", 97887 * MIB, 1.597e12, 504e12)
