"""`python -m goodput.engines.simulated`."""

from goodput.engines.simulated.cli import main

if __name__ == "__main__":
    main()
