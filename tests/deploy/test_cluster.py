"""deploy/cluster and deploy/ray: valid, confined, and agreeing with the settings and with what HAProxy reads."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from scripts.haproxy_files import FOLDER, IN_A_CONTAINER
from service.cluster.ingress.configuration import files
from service.core.settings import Settings, misspelt
from tests.deploy.images import ROOT, SKIP_REASON, read_compose
from tests.service.cluster.ingress.support import needs_haproxy
from tests.service.cluster.ingress.test_configuration import said_of

SERVERS = ("server-1", "server-2")


@cache
def compose() -> dict[str, Any]:
    return read_compose(ROOT / "deploy/cluster/compose.yaml")


def service(name: str) -> dict[str, Any]:
    entry: dict[str, Any] = compose()["services"][name]
    return entry


def test_file_follows_the_compose_specification() -> None:
    read = pytest.importorskip("compose_spec", reason=SKIP_REASON).PyCompose.from_yaml(json.dumps(compose()))
    assert set(read.service_names()) == {*SERVERS, "ingress", "store"}


def test_misspelt_field_is_refused() -> None:
    spec = pytest.importorskip("compose_spec", reason=SKIP_REASON)
    wrong = json.loads(json.dumps(compose()).replace('"stop_signal"', '"stopsignal"'))
    with pytest.raises(ValueError, match="stopsignal"):
        spec.PyCompose.from_yaml(json.dumps(wrong))


@pytest.mark.parametrize("name", [*SERVERS, "ingress"])
def test_each_service_is_confined(name: str) -> None:
    definition = service(name)
    assert definition["read_only"] is True
    assert definition["cap_drop"] == ["ALL"]
    assert definition["security_opt"] == ["no-new-privileges:true"]
    assert definition["mem_limit"]
    assert definition["pids_limit"]


@pytest.mark.parametrize("name", SERVERS)
def test_servers_are_reached_only_through_the_ingress(name: str) -> None:
    assert "ports" not in service(name)
    assert service(name)["networks"]["default"]["aliases"] == [service("ingress")["environment"]["INGRESS_SERVERS"]]
    assert all(port.startswith("127.0.0.1:") for port in service("ingress")["ports"])


@pytest.mark.parametrize("name", SERVERS)
def test_metrics_are_not_reachable_through_the_ingress(name: str) -> None:
    variables = service(name)["environment"]
    assert variables["GRADSERVE_METRICS_HOST"] == "0.0.0.0"
    assert int(variables["GRADSERVE_METRICS_PORT"]) != Settings.model_fields["port"].default


def test_store_has_no_console() -> None:
    assert service("store")["environment"]["MINIO_BROWSER"] == "off"


@pytest.mark.parametrize("name", SERVERS)
def test_each_server_states_its_address(name: str) -> None:
    variables = service(name)["environment"]
    assert variables["GRADSERVE_CLUSTER_ADDRESS"] == f"http://{name}:8000"
    assert misspelt(variables) is None
    for secret in ("GRADSERVE_API_KEY", "GRADSERVE_CLUSTER_SECRET"):
        assert variables[secret].startswith(f"${{{secret}:?")


def test_haproxy_files_match_the_ingress_configuration() -> None:
    """`make docs` writes them."""
    assert {file.name: file.read_bytes() for file in FOLDER.iterdir()} == files(IN_A_CONTAINER)


@needs_haproxy
def test_haproxy_accepts_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INGRESS_SERVERS", "nodes.test")
    assert said_of(IN_A_CONTAINER) == ""
    assert "balanze" in said_of(IN_A_CONTAINER, "balance", "balanze")


def test_ray_accepts_its_file() -> None:
    """Ray ignores misspelt keys."""
    schema = pytest.importorskip("ray.serve.schema", reason="Ray is not installed (pip install 'gradserve[ray]')")
    yaml = pytest.importorskip("yaml", reason=SKIP_REASON)
    document = yaml.safe_load((ROOT / "deploy/ray/gradserve.yaml").read_text(encoding="utf-8"))
    read = schema.ServeDeploySchema.model_validate(document)
    named = [application.import_path for application in read.applications]
    assert named == ["service.cluster.fleet.application:servers", "service.cluster.fleet.application:ingress"]
    assert str(read.proxy_location.value) == "Disabled"
