"""What decides the name of a built program."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from testcluster import builds, toolchain
from testcluster.builds import Program
from testcluster.errors import MachineError


@pytest.fixture
def program(tmp_path: Path) -> Program:
    for name in ("main.go", "go.mod", "go.sum"):
        (tmp_path / name).write_text(name)
    return Program("kube", tmp_path, ".", "-X a.b=1")


def test_the_hash_follows_every_input_and_nothing_else(program: Program) -> None:
    first = builds.input_hash(program)
    (program.folder / "README.md").write_text("no input")
    assert builds.input_hash(program) == first
    seen = {
        first,
        builds.input_hash(replace(program, package="./x")),
        builds.input_hash(replace(program, linker="")),
    }
    for name in ("main.go", "go.mod", "go.sum"):
        (program.folder / name).write_text("changed")
        seen.add(builds.input_hash(program))
    assert len(seen) == 6


def test_text_that_moves_from_one_file_to_the_next_changes_the_hash(program: Program) -> None:
    (program.folder / "go.mod").write_text("ab")
    (program.folder / "go.sum").write_text("c")
    first = builds.input_hash(program)
    (program.folder / "go.mod").write_text("a")
    (program.folder / "go.sum").write_text("bc")
    assert builds.input_hash(program) != first


def test_every_program_is_pinned_with_hashes() -> None:
    found = {program.name: program for program in builds.programs()}
    assert set(found) == {"kube", "helm", "versitygw", "pause"}
    for name in ("kube", "helm", "versitygw"):
        assert (found[name].folder / "go.mod").is_file()
        assert "h1:" in (found[name].folder / "go.sum").read_text()


def test_the_kubernetes_programs_report_the_version_of_go_mod() -> None:
    kube = builds.programs()[0]
    version = builds.kubernetes_version((kube.folder / "go.mod").read_text())
    assert f"gitVersion={version}" in kube.linker


def test_a_go_mod_without_kubernetes_is_an_error() -> None:
    with pytest.raises(MachineError, match="does not name"):
        builds.kubernetes_version("module x\n")


@pytest.mark.parametrize(
    ("version", "enough"), [("go1.26.0", True), ("go1.27rc1", True), ("go2.0", True), ("go1.19.8", False), ("", False)]
)
def test_an_old_toolchain_is_not_used(version: str, enough: bool) -> None:
    assert toolchain.is_enough(version) is enough


def test_the_toolchain_of_last_resort_is_pinned_by_hash() -> None:
    assert "--hash=sha256:" in toolchain.PINNED.read_text()
