"""cluster.json, and a foreign cluster described by the environment."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from testcluster import info, layout, up
from testcluster.errors import ClusterError
from testcluster.layout import Layout

FOREIGN = {
    "KUBECONFIG": "/kube/config",
    "GOODPUT_S3_ENDPOINT": "http://10.0.0.9:9000",
    "GOODPUT_S3_BUCKET": "b",
    "GOODPUT_S3_ACCESS_KEY": "access",
    "GOODPUT_S3_SECRET_KEY": "secret",
}


@pytest.fixture
def place(tmp_path: Path) -> Layout:
    return Layout(cache=tmp_path / "cache", state=tmp_path)


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    path = tmp_path / "bin" / "kubectl"
    path.parent.mkdir()
    path.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(path.parent))
    return str(path)


def test_what_is_written_is_read_again_and_open_to_the_owner_alone(place: Layout) -> None:
    names = ("kubectl", "helm", "versitygw")
    written = info.local(place, {name: place.cache / name for name in names}, ("access", "secret"))
    written.write(place.cluster_json)
    assert info.read(place.cluster_json) == written
    assert stat.S_IMODE(place.cluster_json.stat().st_mode) == 0o600
    assert [path.name for path in place.state.iterdir()] == ["cluster.json"]


def test_without_a_cluster_the_message_says_how_to_get_one(place: Layout) -> None:
    with pytest.raises(ClusterError, match="make cluster-up"):
        info.read(place.cluster_json)


def test_a_file_of_another_version_is_refused(place: Layout) -> None:
    place.cluster_json.write_text(json.dumps({"v": info.VERSION + 1}))
    with pytest.raises(ClusterError, match="another version"):
        info.read(place.cluster_json)


def test_a_foreign_cluster_is_taken_as_described(place: Layout, kubectl: str) -> None:
    env = {**FOREIGN, "GOODPUT_IMAGE_PREFIX": "registry.example/goodput-", "GOODPUT_IMAGE_TAG": "v1"}
    found = info.external(place, env, "/bin/helm")
    assert found.external
    assert found.kubectl == kubectl
    assert found.images["runner"] == "registry.example/goodput-runner:v1"
    assert found.s3.endpoint_pods == found.s3.endpoint_host == FOREIGN["GOODPUT_S3_ENDPOINT"]
    assert found.ctr is None


@pytest.mark.usefixtures("kubectl")
@pytest.mark.parametrize("name", sorted(FOREIGN))
def test_what_is_missing_of_a_foreign_cluster_is_named(place: Layout, name: str) -> None:
    env = {key: value for key, value in FOREIGN.items() if key != name}
    with pytest.raises(ClusterError, match=name):
        info.external(place, env, "/bin/helm")


def test_up_and_down_use_a_foreign_cluster_and_touch_nothing_of_it(place: Layout, kubectl: str) -> None:
    Path(kubectl).with_name("helm").touch(mode=0o755)
    env = {**FOREIGN, "GOODPUT_USE_CLUSTER": "1"}
    found = up.up(place, env=env)
    assert info.read(place.cluster_json) == found
    assert found.helm == str(Path(kubectl).with_name("helm"))
    up.down(place, env=env)
    assert place.cluster_json.exists()


def test_images_have_local_names_by_default() -> None:
    assert info.image_names({})["operator"] == "localhost/goodput-operator:dev"


def test_folders_come_from_the_environment() -> None:
    found = layout.from_environment({"HOME": "/home/a"})
    assert found.state == Path("/home/a/.cache/goodput/cluster")
    second = layout.from_environment({"HOME": "/home/a", "GOODPUT_CACHE": "/c", "GOODPUT_CLUSTER_INDEX": "3"})
    assert (second.cache, second.state) == (Path("/c"), Path("/c/cluster3"))
    assert layout.from_environment({"GOODPUT_CLUSTER_DIR": "/d"}).state == Path("/d")


@pytest.mark.parametrize("text", ["10", "-1", "a", "1.5"])
def test_an_index_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(ClusterError, match="0 to 9"):
        layout.from_environment({"GOODPUT_CLUSTER_INDEX": text})


def test_clusters_beside_each_other_share_no_name_or_address(tmp_path: Path) -> None:
    fields = ("name", "host_link", "node_address", "pod_network", "service_network", "state")
    both = [layout.from_environment({"HOME": str(tmp_path), "GOODPUT_CLUSTER_INDEX": index}) for index in "01"]
    assert all(getattr(both[0], field) != getattr(both[1], field) for field in fields)
