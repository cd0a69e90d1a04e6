"""What the baseline says about itself, where vLLM says it."""

import os
import platform
import sys
from typing import Any

from goodput.engines.transformers.model import ModelFacts


def server_info(facts: ModelFacts, name: str, revision: str | None, *, as_text: bool) -> dict[str, Any]:
    """`GET /server_info`: vLLM's sections as far as they apply, and a `transformers` section."""
    config = {
        "model_config": {
            "model": name,
            "dtype": facts.dtype,
            "max_model_len": facts.max_model_len,
            "revision": revision,
            "attn_implementation": facts.attn_implementation,
        },
        "device_config": {"device": facts.device},
    }
    return {
        "vllm_config": str(config) if as_text else config,
        "vllm_env": {},
        "system_env": {
            "os": platform.platform(),
            "python_version": sys.version,
            "torch_version": facts.torch,
            "is_cuda_available": str(facts.gpu is not None),
            "cuda_runtime_version": facts.cuda,
            "nvidia_gpu_models": facts.gpu,
        },
        "transformers": {
            "transformers_version": facts.transformers,
            "model_commit": facts.commit,
            "eos_token_ids": sorted(facts.eos_token_ids),
            "torch_threads": facts.threads,
            "omp_num_threads": os.environ.get("OMP_NUM_THREADS"),
        },
    }
