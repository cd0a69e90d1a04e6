"""The simulated engine: its profiles from tables, its replay of real runs, its speed."""
