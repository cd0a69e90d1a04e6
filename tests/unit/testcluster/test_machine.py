"""Reading the machine's state: mounts, packages, control groups, settings."""

from __future__ import annotations

import json
from pathlib import Path

from testcluster import components, mounts, packages, settings
from testcluster.builds import KUBE_PROGRAMS
from testcluster.cgroups import ControlGroup
from testcluster.layout import Layout

MOUNTINFO = """\
22 1 254:0 / / rw - ext4 /dev/vda rw
30 22 0:30 / /c/cluster/kubelet/pods/a rw - tmpfs tmpfs rw
31 22 0:31 / /c/cluster/kubelet/pods/a/sub\\040path rw - tmpfs tmpfs rw
32 22 0:32 / /c/cluster2/run rw - tmpfs tmpfs rw
33 22 0:33 / /c/cluster rw - tmpfs tmpfs rw
"""
LAYOUT = Layout(cache=Path("/c"), state=Path("/c/cluster"))
PATHS = {name: Path("/bin") / name for name in (*KUBE_PROGRAMS, "versitygw", "helm")} | {
    "pause": Path("/bin/pause-abc/pause")
}


def test_only_mounts_below_the_folder_are_found_the_last_made_first() -> None:
    pods = "/c/cluster/kubelet/pods/a"
    assert mounts.below(Path("/c/cluster"), MOUNTINFO) == ["/c/cluster", f"{pods}/sub path", pods]


def test_packages_that_are_not_fully_installed_are_missing() -> None:
    lines = [f"installed {name}" for name in packages.PACKAGES if name not in {"runc", "socat"}]
    assert packages.missing("\n".join([*lines, "config-files socat"])) == ["runc", "socat"]
    assert packages.missing("") == list(packages.PACKAGES)


def test_a_control_group_is_made_in_every_hierarchy_of_version_1(tmp_path: Path) -> None:
    for name in ("cpuset", "memory", "unified"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cgroup.procs").write_text("")
    for name in ("cpuset.cpus", "cpuset.mems"):
        (tmp_path / "cpuset" / name).write_text("0-1")
    (tmp_path / "cpu").symlink_to("memory")
    group = ControlGroup("goodput0", tmp_path)
    group.make()
    assert (tmp_path / "memory/goodput0").is_dir()
    assert (tmp_path / "cpuset/goodput0/cpuset.cpus").read_text() == "0-1"
    assert not (tmp_path / "unified/goodput0").exists()


def test_a_control_group_of_version_2_gets_all_controllers(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu memory\n")
    (tmp_path / "cgroup.subtree_control").write_text("")
    ControlGroup("goodput0", tmp_path).make()
    assert (tmp_path / "goodput0").is_dir()
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+memory"  # the last one written


def test_secrets_are_on_no_command_line_and_in_no_settings_file() -> None:
    programs = components.components(LAYOUT, PATHS, ("ACCESS", "SECRET"))
    files = settings.config_files(LAYOUT, settings.pause_image(PATHS))
    assert "SECRET" not in json.dumps([item.argv for item in programs]) + "".join(files.values())
    assert [item.env for item in programs if item.env] == [{"ROOT_ACCESS_KEY": "ACCESS", "ROOT_SECRET_KEY": "SECRET"}]


def test_every_program_names_the_folder_by_which_it_is_found_again() -> None:
    for item in components.components(LAYOUT, PATHS, ("a", "b")):
        assert any("/c/cluster/" in argument for argument in item.argv[1:]), item.name


def test_the_sandbox_image_is_named_after_the_program_in_it() -> None:
    assert settings.pause_image(PATHS) == "localhost/goodput-pause:abc"
