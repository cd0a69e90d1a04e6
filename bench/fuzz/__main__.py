"""``python -m bench.fuzz [--mutants 1000000] [--seed 0] [--processes 1]``: the summary of a long run."""

from __future__ import annotations

import argparse
import time

from bench.fuzz.campaign import campaign
from bench.fuzz.corpus import answers

_SHOWN = 20


def main() -> None:
    """Print what was found; status 1 where something was."""
    parser = argparse.ArgumentParser(prog="python -m bench.fuzz", description=campaign.__doc__)
    parser.add_argument("--mutants", type=int, default=1_000_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    started = time.monotonic()
    told = campaign(options.mutants, first=options.first, seed=options.seed, processes=options.processes)
    count = sum(told.verdicts.values())
    print(f"{count} mutants of {len(answers())} answers, seed {options.seed}, {told.megabytes:.0f} MB")
    print(
        f"{time.monotonic() - started:.0f} s, {told.cpu_seconds:.0f} s of CPU: {count / told.cpu_seconds:.0f}/s of CPU"
    )
    print("verdicts: " + ", ".join(f"{reason} {times}" for reason, times in told.verdicts.most_common()))
    print(f"violations: {len(told.found)}")
    for found in told.found[:_SHOWN]:
        print(f"  mutant {found.number} ({found.answer}): {'; '.join(found.complaints)}")
    raise SystemExit(bool(told.found))


if __name__ == "__main__":
    main()
