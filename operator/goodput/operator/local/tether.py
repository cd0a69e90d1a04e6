"""Ends a child when its driver dies, even by SIGKILL: `tether.py DRIVER_PID COMMAND...` becomes the command.

On Linux the kernel sends SIGTERM to the child once its parent is gone (prctl PR_SET_PDEATHSIG survives exec).
Elsewhere the next run of the driver finds and ends what was left. Run as a script, with the standard library only.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main() -> None:
    """Tie this process to the driver, then become the command."""
    driver, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != driver:  # it died before the line above
        sys.exit(1)
    os.execvp(command[0], command)  # noqa: S606  # no shell is wanted


if __name__ == "__main__":
    main()
