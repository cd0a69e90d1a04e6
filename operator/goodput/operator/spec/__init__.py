"""The BenchmarkSweep's spec: models, refusals, the grid, and the resolved sweep. Pure, without kopf."""
