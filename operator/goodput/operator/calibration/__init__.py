"""``goodput calibrate``: a profile of the simulated engine from a sweep's records."""
