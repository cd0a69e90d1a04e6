"""What can be benchmarked besides vLLM. Imports no other part; it is started as a process, never called."""
