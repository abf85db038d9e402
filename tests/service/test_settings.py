"""Settings come from what is stated, then from the environment, then from defaults; workers have what they are told."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from service.core.settings import SECRETS, Settings, format_setting


@pytest.mark.parametrize("spelling", ["GRADSERVE_MAX_NODES", "gradserve_max_nodes"])
def test_the_environment_states_what_nobody_else_does(monkeypatch: pytest.MonkeyPatch, spelling: str) -> None:
    monkeypatch.setenv(spelling, "77")
    assert Settings().max_nodes == 77
    assert Settings(max_nodes=5).max_nodes == 5


def test_a_default_that_depends_on_others_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADSERVE_MAX_CONNECTIONS", "80")
    assert Settings().max_connections_per_client == 10


def test_a_worker_has_what_it_is_told_whatever_its_environment_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Folders, files and lists among them, which JSON has as text."""
    stated = Settings(
        cache_dir=str(tmp_path), tls_cert=tmp_path / "cert", cors_origins="https://a.example,https://b.example"
    )
    monkeypatch.setenv("GRADSERVE_MAX_NODES", "77")
    told = Settings.model_validate_json(stated.model_dump_json(exclude=set(SECRETS)))
    assert dict(told) == dict(stated)


@pytest.mark.parametrize(("stated", "port"), [("8001", 8001), ("0", 0), ("none", None), ("", None)])
def test_metrics_have_a_port_or_none(monkeypatch: pytest.MonkeyPatch, stated: str, port: int | None) -> None:
    assert Settings().metrics_port is None
    monkeypatch.setenv("GRADSERVE_METRICS_PORT", stated)
    assert Settings().metrics_port == port
    assert Settings(metrics_port=format_setting("metrics_port", port)).metrics_port == port


def test_metrics_have_a_port_of_their_own() -> None:
    with pytest.raises(ValidationError, match="a port other than that of --port was expected"):
        Settings(port=8001, metrics_port=8001)
    assert Settings(port=0, metrics_port=0).metrics_port == 0


@pytest.mark.parametrize("stated", ["http://h:8000", "https://h/", "http://[::1]:9"])
def test_an_ingress_is_an_address(stated: str) -> None:
    assert Settings(ingress=stated).ingress == stated.removesuffix("/")


@pytest.mark.parametrize("stated", ["h:8000", "ftp://h", "http://", "http://h/v1", "http://key@h:1", "http://h?x=1"])
def test_what_is_no_address_is_refused(stated: str) -> None:
    with pytest.raises(ValidationError, match="the address of an ingress was expected"):
        Settings(ingress=stated)


def test_a_server_has_a_name_where_there_are_others() -> None:
    assert Settings().server_name is None
    assert Settings(cluster_address="http://10.0.0.7:8000", ingress="http://h").server_name == "http://10.0.0.7:8000"
    assert (Settings(ingress="http://h", port=8123).server_name or "").endswith(":8123")
