"""Command line: ``python3 -m testcluster up|down|images|info``."""

from __future__ import annotations

import argparse
import sys

from testcluster import info, layout
from testcluster.errors import ClusterError
from testcluster.images import build_and_load
from testcluster.shell import say
from testcluster.up import down, up


def main(argv: list[str] | None = None) -> int:
    """Run one subcommand; 0 when it went well, 1 with the reason on standard error when not."""
    parser = argparse.ArgumentParser(
        prog="testcluster", description="A real one-node Kubernetes and an S3 server for tests."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    starting = commands.add_parser("up", help="install, build and start what is missing; prints cluster.json")
    starting.add_argument("--fake-gpus", type=int, metavar="N", help="give the node N pieces of nvidia.com/gpu")
    commands.add_parser("down", help="stop the cluster and leave nothing behind but caches")
    building = commands.add_parser("images", help="build the project's images and load them into the cluster")
    building.add_argument("--vllm", action="store_true", help="that of vLLM's CPU build in their place")
    commands.add_parser("info", help="print cluster.json")
    options = parser.parse_args(argv)
    place = layout.from_environment()
    try:
        if options.command == "up":
            up(place, options.fake_gpus)
        elif options.command == "down":
            down(place)
        elif options.command == "images":
            build_and_load(place, vllm=options.vllm)
        if options.command in {"up", "info"}:
            info.read(place.cluster_json)
            sys.stdout.write(place.cluster_json.read_text())
    except ClusterError as error:
        say(f"failed: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
