"""What can be benchmarked besides vLLM. Stands alone: it imports no other part and is only started, never called."""
