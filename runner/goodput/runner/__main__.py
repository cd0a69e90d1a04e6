"""``python -m goodput.runner``: the same as ``goodput-runner``."""

from __future__ import annotations

from goodput.runner.cli import main

if __name__ == "__main__":
    main()
