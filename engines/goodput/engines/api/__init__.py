"""What every engine's server shares: vLLM 0.32's OpenAI-compatible API, its metrics, and the process around them."""
