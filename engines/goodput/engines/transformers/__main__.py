"""`python -m goodput.engines.transformers MODEL [flags]`."""

from goodput.engines.transformers.cli import main

if __name__ == "__main__":
    main()
