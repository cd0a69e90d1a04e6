"""What can go wrong while the test cluster is built, started or stopped."""

from __future__ import annotations


class ClusterError(Exception):
    """Base of all errors of this package; the message says what failed and what to do."""


class CommandError(ClusterError):
    """A program ended with a status other than zero."""

    def __init__(self, argv: list[str], status: int, output: str) -> None:
        self.argv = argv
        self.status = status
        self.output = output
        super().__init__(f"{' '.join(argv)}: exit {status}\n{output[-3000:]}")


class ComponentError(ClusterError):
    """A program of the cluster ended, or was not ready in time; the message holds the end of its log."""


class MachineError(ClusterError):
    """The machine lacks something that cannot be installed from here (root, a Go toolchain, a setting)."""
