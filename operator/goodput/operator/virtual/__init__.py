"""The driver of virtual time: the same plan, on a clock that jumps, with simulated servers in this process."""
