"""``python -m goodput.analysis``: the same as ``goodput-analysis``."""

from goodput.analysis.cli import main

if __name__ == "__main__":
    main()
