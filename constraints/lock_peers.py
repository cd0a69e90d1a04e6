"""Write constraints/peers/NAME.txt: what one load client of the comparison is installed from.

    pip install --dry-run --ignore-installed --report REPORT REQUIREMENT...   (in a fresh environment of that Python)
    python constraints/lock_peers.py NAME REPORT

One hash per package, that of the file which pip chose: the pins hold for the platform of the report alone
(Linux x86-64). The files hold names, versions and hashes, no addresses.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

FOLDER = Path(__file__).parent / "peers"


def lines(report: dict[str, Any]) -> str:
    """Requirement lines of a pip installation report, sorted by name.

    Raises:
        ValueError: a package has no archive, so nothing could check it.
    """
    found: dict[str, str] = {}
    for item in report["install"]:
        name, version = canonicalize_name(item["metadata"]["name"]), item["metadata"]["version"]
        digest = item["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256")
        if digest is None:
            raise ValueError(f"{name}=={version} comes from no archive with a SHA-256")
        found[name] = f"{name}=={version} --hash=sha256:{digest}\n"
    return "".join(found[name] for name in sorted(found))


def main() -> None:
    """Write one file."""
    name, report = sys.argv[1:]
    (FOLDER / f"{name}.txt").write_text(lines(json.loads(Path(report).read_text())))


if __name__ == "__main__":
    main()
