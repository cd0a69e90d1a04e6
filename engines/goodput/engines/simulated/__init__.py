"""A synthetic inference server that schedules as vLLM V1 does.

`scheduler`, `blocks`, `profile` and `core` are pure: integer nanoseconds in, integer nanoseconds out,
no input or output, no wall clock. `server` puts them behind HTTP in real time, `virtual` runs them
without waiting.
"""
