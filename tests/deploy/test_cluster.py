"""deploy/cluster and deploy/ray: valid, confined, and agreeing with the settings and with what HAProxy reads."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from scripts.haproxy_files import FOLDER, IN_A_CONTAINER
from service.cluster.ingress.configuration import files
from service.core.settings import Settings, misspelt
from tests.deploy.images import ROOT, WHY
from tests.service.cluster.ingress.support import needs_haproxy
from tests.service.cluster.ingress.test_configuration import said_of

SERVERS = ("server-1", "server-2")


@cache
def compose() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml", reason=WHY)
    document: dict[str, Any] = yaml.safe_load((ROOT / "deploy/cluster/compose.yaml").read_text(encoding="utf-8"))
    return document


def service(name: str) -> dict[str, Any]:
    found: dict[str, Any] = compose()["services"][name]
    return found


def test_it_follows_the_compose_specification() -> None:
    read = pytest.importorskip("compose_spec", reason=WHY).PyCompose.from_yaml(json.dumps(compose()))
    assert set(read.service_names()) == {*SERVERS, "ingress", "store"}


def test_a_misspelt_field_is_noticed() -> None:
    spec = pytest.importorskip("compose_spec", reason=WHY)
    wrong = json.loads(json.dumps(compose()).replace('"stop_signal"', '"stopsignal"'))
    with pytest.raises(ValueError, match="stopsignal"):
        spec.PyCompose.from_yaml(json.dumps(wrong))


@pytest.mark.parametrize("name", [*SERVERS, "ingress"])
def test_each_service_is_confined(name: str) -> None:
    given = service(name)
    assert given["read_only"] is True
    assert given["cap_drop"] == ["ALL"]
    assert given["security_opt"] == ["no-new-privileges:true"]
    assert given["mem_limit"]
    assert given["pids_limit"]


@pytest.mark.parametrize("name", SERVERS)
def test_servers_are_reached_through_the_ingress_alone(name: str) -> None:
    assert "ports" not in service(name)
    assert service(name)["networks"]["default"]["aliases"] == [service("ingress")["environment"]["INGRESS_SERVERS"]]
    assert all(port.startswith("127.0.0.1:") for port in service("ingress")["ports"])


@pytest.mark.parametrize("name", SERVERS)
def test_metrics_are_where_the_ingress_leads_nobody(name: str) -> None:
    variables = service(name)["environment"]
    assert variables["GRADSERVE_METRICS_HOST"] == "0.0.0.0"
    assert int(variables["GRADSERVE_METRICS_PORT"]) != Settings.model_fields["port"].default


def test_the_store_has_no_console() -> None:
    assert service("store")["environment"]["MINIO_BROWSER"] == "off"


@pytest.mark.parametrize("name", SERVERS)
def test_each_server_says_where_it_is(name: str) -> None:
    variables = service(name)["environment"]
    assert variables["GRADSERVE_CLUSTER_ADDRESS"] == f"http://{name}:8000"
    assert misspelt(variables) is None
    for secret in ("GRADSERVE_API_KEY", "GRADSERVE_CLUSTER_SECRET"):
        assert variables[secret].startswith(f"${{{secret}:?")


def test_the_files_of_haproxy_are_what_the_ingress_has_it_read() -> None:
    """`make docs` writes them."""
    assert {file.name: file.read_bytes() for file in FOLDER.iterdir()} == files(IN_A_CONTAINER)


@needs_haproxy
def test_haproxy_takes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INGRESS_SERVERS", "nodes.test")
    assert said_of(IN_A_CONTAINER) == ""
    assert "balanze" in said_of(IN_A_CONTAINER, "balance", "balanze")


def test_ray_takes_its_file() -> None:
    """It is lenient: of misspelt keys it says nothing."""
    schema = pytest.importorskip("ray.serve.schema", reason="Ray is not installed (pip install 'gradserve[ray]')")
    yaml = pytest.importorskip("yaml", reason=WHY)
    document = yaml.safe_load((ROOT / "deploy/ray/gradserve.yaml").read_text(encoding="utf-8"))
    read = schema.ServeDeploySchema.model_validate(document)
    named = [application.import_path for application in read.applications]
    assert named == ["service.cluster.fleet.application:servers", "service.cluster.fleet.application:ingress"]
    assert str(read.proxy_location.value) == "Disabled"
