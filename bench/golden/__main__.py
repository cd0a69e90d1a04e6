"""``python -m bench.golden --script FILE.json --port P [--cpu N] [--fifo]`` serves a script.

``python -m bench.golden --catalogue completions|chat`` prints the catalogue's.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import sys
from pathlib import Path

from bench.golden.catalogue import ASKED, catalogue
from bench.golden.script import Script
from bench.golden.server import Server


def main() -> None:
    """Serve a script, or print the catalogue as one."""
    parser = argparse.ArgumentParser(prog="python -m bench.golden", description=Server.__doc__)
    parser.add_argument("--script", type=Path, help="a script as JSON (bench/golden/script.py says what is in it)")
    parser.add_argument("--port", type=int, default=8000, help="0: any free one, printed")
    parser.add_argument("--cpu", type=int, help="the core to run on")
    parser.add_argument("--fifo", action="store_true", help="real-time scheduling (needs the right to)")
    parser.add_argument("--child", action="store_true", help="end when standard input ends")
    parser.add_argument("--catalogue", choices=("completions", "chat"), help="print the script of all cases and end")
    parser.add_argument("--tokens", type=int, default=ASKED, help="that the catalogue's client asks for")
    options = parser.parse_args()
    if options.catalogue is not None:
        print(json.dumps(catalogue(options.catalogue, options.tokens).document()))
        return
    if options.script is None:
        parser.error("--script or --catalogue is needed")
    script = Script.of(json.loads(options.script.read_text()))
    if options.cpu is not None:
        os.sched_setaffinity(0, {options.cpu})
    if options.fifo:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    server = Server(script, options.port, sys.stdin.fileno() if options.child else None)
    print(f"golden server on port {server.port}", flush=True)
    gc.freeze()
    gc.disable()
    try:
        server.run()
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
