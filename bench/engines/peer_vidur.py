"""Runs Vidur (PyPI) on a load, with given step costs; printed as JSON. For the environment of the peer alone.

Vidur's tables are fetched from elsewhere when it runs; in their place it gets costs of the simulated engine's
form. Its scheduler (Sarathi's, chunk = token budget), its events and its blocks are its own; metrics are off.
"""

import json
import sys
import time
from typing import Any

from vidur.config import (
    CacheConfig,
    ClusterConfig,
    FixedRequestLengthGeneratorConfig,
    MetricsConfig,
    PoissonRequestIntervalGeneratorConfig,
    RandomForrestExecutionTimePredictorConfig,
    ReplicaConfig,
    SarathiSchedulerConfig,
    SimulationConfig,
    SyntheticRequestGeneratorConfig,
)
from vidur.execution_time_predictor import ExecutionTimePredictorRegistry
from vidur.execution_time_predictor.base_execution_time_predictor import BaseExecutionTimePredictor
from vidur.simulator import Simulator
from vidur.types import ExecutionTimePredictorType

ASKED = json.loads(sys.argv[1])
COSTS = ASKED["costs"]
LAYERS = 32
MS = 1e3


class Given(BaseExecutionTimePredictor):  # type: ignore[misc]  # of a package without types
    """Matrix products in one term, attention in two, nothing in the others."""

    def _get_mlp_layer_up_proj_execution_time(self, batch: Any) -> float:
        weights, compute = COSTS["weights_seconds"], COSTS["per_token_seconds"] * sum(batch.num_q_tokens)
        p = COSTS["blend_exponent"]
        return float((COSTS["overhead_seconds"] + (weights**p + compute**p) ** (1 / p)) * MS / LAYERS)

    def _get_attention_decode_execution_time(self, batch: Any) -> float:
        tokens = zip(batch.num_q_tokens, batch.num_kv_tokens, strict=True)
        context = sum(kv + 1 for q, kv in tokens if q == 1)
        return float(COSTS["per_decode_kv_token_seconds"] * context * MS / LAYERS)

    def _get_attention_prefill_execution_time(self, batch: Any) -> float:
        tokens = zip(batch.num_q_tokens, batch.num_kv_tokens, strict=True)
        pairs = sum(q * (kv + q / 2) for q, kv in tokens if q > 1)
        return float(COSTS["per_prefill_attention_seconds"] * pairs * MS / LAYERS)

    def _none(self, _batch: Any) -> float:
        return 0.0

    _get_attention_layer_pre_proj_execution_time = _none
    _get_attention_layer_post_proj_execution_time = _none
    _get_attention_rope_execution_time = _none
    _get_attention_kv_cache_save_execution_time = _none
    _get_mlp_layer_down_proj_execution_time = _none
    _get_mlp_layer_act_execution_time = _none
    _get_tensor_parallel_communication_time = _none
    _get_pipeline_parallel_communication_time = _none
    _get_mlp_norm_layer_act_execution_time = _none
    _get_attn_norm_layer_act_execution_time = _none
    _get_add_layer_act_execution_time = _none
    _get_kv_parallel_communication_time = _none


def main() -> None:
    """Entry point."""
    key = ExecutionTimePredictorType.RANDOM_FORREST
    ExecutionTimePredictorRegistry.unregister(key)
    ExecutionTimePredictorRegistry.register(key, Given)
    config = SimulationConfig(
        log_level="error",
        cluster_config=ClusterConfig(
            num_replicas=1,
            replica_config=ReplicaConfig(
                model_name="meta-llama/Llama-3-8B", device="h100", num_pipeline_stages=1, tensor_parallel_size=1
            ),
            cache_config=CacheConfig(block_size=ASKED["block_size"], num_blocks=ASKED["blocks"]),
            replica_scheduler_config=SarathiSchedulerConfig(
                batch_size_cap=ASKED["sequences"], chunk_size=ASKED["budget"]
            ),
        ),
        request_generator_config=SyntheticRequestGeneratorConfig(
            num_requests=ASKED["requests"],
            length_generator_config=FixedRequestLengthGeneratorConfig(
                prefill_tokens=ASKED["prompt_tokens"], decode_tokens=ASKED["output_tokens"]
            ),
            interval_generator_config=PoissonRequestIntervalGeneratorConfig(qps=ASKED["rate"]),
        ),
        execution_time_predictor_config=RandomForrestExecutionTimePredictorConfig(
            use_native_execution_time_predictor=False
        ),
        metrics_config=MetricsConfig(
            write_metrics=False,
            write_json_trace=False,
            enable_chrome_trace=False,
            store_plots=False,
            store_operation_metrics=False,
            store_token_completion_metrics=False,
            store_request_metrics=False,
            store_batch_metrics=False,
            store_utilization_metrics=False,
            output_dir=ASKED["folder"],
        ),
    )
    simulator = Simulator(config)
    began = time.perf_counter()
    simulator.run()
    ended = simulator._time  # noqa: SLF001  # it has no other door
    print(json.dumps({"simulated_seconds": ended, "wall_seconds": time.perf_counter() - began}))


main()
