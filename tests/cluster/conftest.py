"""What tests on the real cluster share. They fail, and are not skipped, where no cluster is up."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client
from kubernetes.client import ApiClient
from kubernetes.client.exceptions import ApiException
from kubernetes.config import load_kube_config
from obstore.store import S3Store
from testcluster import info, layout
from testcluster.errors import ClusterError
from testcluster.info import ClusterInfo

ACCOUNT_S = 30.0
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


@pytest.fixture(scope="session")
def cluster() -> ClusterInfo:
    """The cluster that is up: paths of its programs, its S3 server, its images."""
    try:
        return info.read(layout.from_environment().cluster_json)
    except ClusterError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="session")
def kube_api(cluster: ClusterInfo) -> Iterator[ApiClient]:
    """The official client, as administrator: ``client.CoreV1Api(kube_api)``."""
    configuration = client.Configuration()
    load: Any = load_kube_config  # the client's untyped part
    load(config_file=cluster.kubeconfig, client_configuration=configuration)
    with ApiClient(configuration) as api:
        yield api


@pytest.fixture
def namespace(kube_api: ApiClient) -> Iterator[str]:
    """Name of a fresh namespace that enforces restricted Pod Security; deleted after the test."""
    core = client.CoreV1Api(kube_api)
    name = f"test-{uuid.uuid4().hex[:10]}"
    core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=name, labels=RESTRICTED)))
    try:
        _wait_for_account(core, name)
        yield name
    finally:
        core.delete_namespace(name, grace_period_seconds=0)


@pytest.fixture(scope="session")
def s3(cluster: ClusterInfo) -> S3Store:
    """The test bucket, as the host sees it."""
    return s3_store(cluster)


def s3_store(cluster: ClusterInfo, **options: Any) -> S3Store:
    """A store on the test bucket; ``options`` go to S3Store, such as ``prefix``."""
    server = cluster.s3
    return S3Store(
        server.bucket,
        endpoint=server.endpoint_host,
        access_key_id=server.access_key,
        secret_access_key=server.secret_key,
        region=server.region,
        virtual_hosted_style_request=False,
        client_options={"allow_http": True},
        **options,
    )


def _wait_for_account(core: client.CoreV1Api, namespace: str) -> None:
    """Wait until the namespace has its default ServiceAccount: pods are refused before."""
    deadline = time.monotonic() + ACCOUNT_S
    while True:
        try:
            core.read_namespaced_service_account("default", namespace)
        except ApiException as error:
            if error.status != 404:
                raise
        else:
            return
        if time.monotonic() > deadline:
            pytest.fail(f"namespace {namespace} got no default ServiceAccount within {ACCOUNT_S} s")
        time.sleep(0.05)
