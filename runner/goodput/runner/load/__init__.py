"""The load client: one pre-drawn schedule, an epoll hot path in its own processes, and a parser that runs later.

`run` is the door for the trial; `worker` is what it starts. Nothing is imported here, so that a worker
starts with the standard library alone.
"""
