"""Write the pinned, hashed requirement files beside this script.

    python constraints/lock.py           derive operator.txt, runner.txt, ... from dev.txt
    python constraints/lock.py --resolve  resolve dev.txt, build.txt and transformers.txt anew first (needs uv)

dev.txt is resolved once for all extras, so every image holds the same versions; the other files are the part
of it that one extra needs. The files hold names, versions and hashes, no addresses.
Deriving reads the metadata of the environment it runs in: run it in the project's own.

transformers.txt is what dev.txt has none of: torch with its CUDA libraries, as PyPI has it for Linux on x86-64, and
transformers; where dev.txt has a package, its version, else that beside which vLLM is tested (peers/vllm.txt).
"""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HERE = Path(__file__).parent
PROJECT = HERE.parent / "pyproject.toml"
EXTRAS = ("operator", "runner", "analysis", "engines", "local")
BUILD = ("hatchling==1.33.0", "editables==0.5")


def resolve(target: Path, *arguments: str) -> None:
    """Resolve and keep nothing but pins and hashes."""
    options = ["--generate-hashes", "--no-emit-index-url", "--no-emit-find-links", "--no-header", "--strip-extras"]
    subprocess.run(["uv", "pip", "compile", "-q", *options, "-o", str(target), *arguments], check=True)
    target.write_text("".join(pins(target).values()))


def resolve_transformers() -> None:
    """The baseline's environment, on versions that are pinned already as far as they are."""
    known = pins(HERE / "peers" / "vllm.txt") | pins(HERE / "dev.txt")
    versions = HERE / "versions.in"
    versions.write_text("".join(f"{lines.split()[0]}\n" for lines in known.values()))
    resolve(HERE / "transformers.txt", "--extra", "transformers", "--constraint", str(versions), str(PROJECT))
    versions.unlink()


def pins(path: Path) -> dict[str, str]:
    """Each pinned package of a requirement file, by canonical name: its lines."""
    found: dict[str, str] = {}
    for block in re.split(r"\n(?=[A-Za-z0-9])", path.read_text()):
        lines = [line for line in block.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        match = re.match(r"([A-Za-z0-9._-]+)==", lines[0]) if lines else None
        if match:
            found[canonicalize_name(match[1])] = "\n".join(lines) + "\n"
    return found


def closure(requirements: list[str]) -> set[str]:
    """Canonical names of everything these requirements need, by the metadata of what is installed."""
    seen: set[tuple[str, str]] = set()
    todo = [Requirement(text) for text in requirements]
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        for extra in {"", *requirement.extras}:
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            try:
                needs = distribution(name).requires or []
            except PackageNotFoundError as error:
                raise SystemExit(f"{name} is not installed: install constraints/dev.txt first") from error
            marked = (Requirement(need) for need in needs)
            todo.extend(need for need in marked if need.marker is None or need.marker.evaluate({"extra": extra}))
    return {name for name, _ in seen if name != "goodput"}


def main() -> None:
    """Write all files."""
    if "--resolve" in sys.argv[1:]:
        resolve(HERE / "dev.txt", "--extra", "dev", str(PROJECT))
        (HERE / "build.in").write_text("\n".join(BUILD) + "\n")
        resolve(HERE / "build.txt", str(HERE / "build.in"))
        (HERE / "build.in").unlink()
        resolve_transformers()
    locked = pins(HERE / "dev.txt")
    for extra in EXTRAS:
        names = sorted(closure([f"goodput[{extra}]"]))
        (HERE / f"{extra}.txt").write_text("".join(locked[name] for name in names))


if __name__ == "__main__":
    main()
