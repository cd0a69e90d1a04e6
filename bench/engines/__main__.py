"""Speed of the simulated engine: ``python -m bench.engines [--no-http] [--no-peer]``. Exit 1 where an aim is missed.

In order: virtual time against real time, where it goes, memory by the number of requests, a published simulator on
the same load, and 1,000 streams over HTTP.
"""

import argparse
import sys

from bench.engines.peer import peer
from bench.engines.speed import memory, speed, where
from bench.engines.streams import streams


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-http", action="store_true", help="leave the two minutes of streams out")
    parser.add_argument("--no-peer", action="store_true", help="install nothing and run no other simulator")
    asked = parser.parse_args()
    good = [speed()]
    where()
    good.append(memory())
    if not asked.no_peer:
        peer()
    if not asked.no_http:
        good.append(streams())
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
