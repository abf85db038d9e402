"""Settings come from arguments, then the environment, then defaults; workers get the settings of the server."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from service.core.settings import SECRETS, Settings, format_setting


@pytest.mark.parametrize("spelling", ["GRADSERVE_MAX_NODES", "gradserve_max_nodes"])
def test_arguments_override_the_environment(monkeypatch: pytest.MonkeyPatch, spelling: str) -> None:
    monkeypatch.setenv(spelling, "77")
    assert Settings().max_nodes == 77
    assert Settings(max_nodes=5).max_nodes == 5


def test_dependent_default_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADSERVE_MAX_CONNECTIONS", "80")
    assert Settings().max_connections_per_client == 10


def test_worker_settings_ignore_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Folders, files and lists travel as JSON text."""
    settings = Settings(
        cache_dir=str(tmp_path), tls_cert=tmp_path / "cert", cors_origins="https://a.example,https://b.example"
    )
    monkeypatch.setenv("GRADSERVE_MAX_NODES", "77")
    received = Settings.model_validate_json(settings.model_dump_json(exclude=set(SECRETS)))
    assert dict(received) == dict(settings)


@pytest.mark.parametrize(("stated", "port"), [("8001", 8001), ("0", 0), ("none", None), ("", None)])
def test_metrics_port_may_be_none(monkeypatch: pytest.MonkeyPatch, stated: str, port: int | None) -> None:
    assert Settings().metrics_port is None
    monkeypatch.setenv("GRADSERVE_METRICS_PORT", stated)
    assert Settings().metrics_port == port
    assert Settings(metrics_port=format_setting("metrics_port", port)).metrics_port == port


def test_metrics_port_must_differ_from_the_port() -> None:
    with pytest.raises(ValidationError, match="--port has the same port; use another one"):
        Settings(port=8001, metrics_port=8001)
    assert Settings(port=0, metrics_port=0).metrics_port == 0


@pytest.mark.parametrize("stated", ["http://h:8000", "https://h/", "http://[::1]:9"])
def test_ingress_address_is_accepted(stated: str) -> None:
    assert Settings(ingress=stated).ingress == stated.removesuffix("/")


@pytest.mark.parametrize("stated", ["h:8000", "ftp://h", "http://", "http://h/v1", "http://key@h:1", "http://h?x=1"])
def test_malformed_ingress_address_is_refused(stated: str) -> None:
    with pytest.raises(ValidationError, match="expected the address of an ingress"):
        Settings(ingress=stated)


def test_server_name_is_set_with_a_cluster_or_an_ingress() -> None:
    assert Settings().server_name is None
    assert Settings(cluster_address="http://10.0.0.7:8000", ingress="http://h").server_name == "http://10.0.0.7:8000"
    assert (Settings(ingress="http://h", port=8123).server_name or "").endswith(":8123")
