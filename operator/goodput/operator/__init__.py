"""What plans: the BenchmarkSweep, the pure planner, its two drivers (cluster and local), the command line."""
