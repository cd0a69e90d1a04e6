"""The sequential baseline: vLLM's API in front of Hugging Face Transformers' `generate()`, one request at a time."""
