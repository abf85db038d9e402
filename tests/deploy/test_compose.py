"""compose.yaml: valid, confined, and agreeing with the Dockerfile and the settings."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from service.core.settings import Settings
from tests.deploy.images import (
    ROOT,
    SECRET_NAME,
    SKIP_REASON,
    compose,
    environment,
    health,
    shows_a_secret,
    stages,
    volumes,
)

SERVICES = ("cpu", "gpu")
TARGET = {"cpu": "cpu", "gpu": "cuda"}


def service(name: str) -> dict[str, Any]:
    return compose()["services"][name]


def validated(document: dict[str, Any]) -> Any:
    """The document, parsed by a reader of the Compose specification. Raises ValueError."""
    return pytest.importorskip("compose_spec", reason=SKIP_REASON).PyCompose.from_yaml(json.dumps(document))


def test_file_follows_the_compose_specification() -> None:
    assert set(validated(compose()).service_names()) == set(SERVICES)


def test_misspelt_field_is_refused() -> None:
    with pytest.raises(ValueError, match="readonly"):
        validated({"services": {"cpu": {"image": "x", "readonly": True}}})


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_is_confined(name: str) -> None:
    definition = service(name)
    assert definition["read_only"] is True
    assert definition["cap_drop"] == ["ALL"]
    assert definition["security_opt"] == ["no-new-privileges:true"]
    assert [entry.partition(":")[0] for entry in definition["tmpfs"]] == ["/tmp"]
    assert definition["mem_limit"]
    assert definition["pids_limit"]
    assert not {"privileged", "cap_add", "user", "network_mode", "pid"} & set(definition)


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_listens_on_localhost_only(name: str) -> None:
    (port,) = service(name)["ports"]
    address, _, inside = port.split(":")
    assert address == "127.0.0.1"
    assert int(inside) == Settings.model_fields["port"].default


COMPOSE_FILES = [ROOT / "compose.yaml", *(ROOT / "deploy").glob("**/*compose*.yaml")]


@pytest.mark.parametrize("file", COMPOSE_FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_secrets_are_in_the_environment_not_in_commands(file: Path) -> None:
    document = pytest.importorskip("yaml", reason=SKIP_REASON).safe_load(file.read_text(encoding="utf-8"))
    for service_name, definition in document["services"].items():
        secrets = {name: value for name, value in definition.get("environment", {}).items() if SECRET_NAME.search(name)}
        assert all(re.match(r"\$\{[A-Z_]+:\?", value) for value in secrets.values()), service_name
        named = {*secrets, *(value[2:].partition(":")[0] for value in secrets.values())}
        run = [definition.get("command"), definition.get("entrypoint"), definition.get("healthcheck")]
        assert not shows_a_secret(run, named), service_name


def test_command_with_a_secret_is_detected() -> None:
    for command in ("--password=$PASSWORD", "$$PASSWORD", "${PASSWORD}", "${PASSWORD:?}", "$(PASSWORD)"):
        assert shows_a_secret(["sh", "-c", command], ["PASSWORD"])
    assert not shows_a_secret(["sh", "-c", "$PASSWORD_FILE"], ["PASSWORD"])


@pytest.mark.parametrize("name", SERVICES)
def test_no_service_starts_without_a_key(name: str) -> None:
    """Compose itself refuses a missing or empty variable."""
    assert service(name)["environment"]["GRADSERVE_API_KEY"].startswith("${GRADSERVE_API_KEY:?")


def test_services_use_different_ports() -> None:
    assert len({service(name)["ports"][0].split(":")[1] for name in SERVICES}) == len(SERVICES)


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_builds_a_target(name: str) -> None:
    assert service(name)["build"]["target"] == TARGET[name]
    assert TARGET[name] in stages()


@pytest.mark.parametrize("name", SERVICES)
def test_health_check_matches_the_image(name: str) -> None:
    assert service(name)["healthcheck"]["test"] == health(TARGET[name])


@pytest.mark.parametrize("name", SERVICES)
def test_requests_in_flight_can_finish_on_stop(name: str) -> None:
    grace = service(name)["stop_grace_period"]
    assert grace.endswith("s")
    assert int(grace.removesuffix("s")) > Settings.model_fields["shutdown_grace"].default


def test_only_the_gpu_service_needs_a_profile() -> None:
    assert service("gpu")["profiles"] == ["gpu"]
    assert "profiles" not in service("cpu")


@pytest.mark.parametrize("name", SERVICES)
def test_caches_and_state_are_on_volumes(name: str) -> None:
    mounts = dict(reversed(mount.split(":")) for mount in service(name)["volumes"])
    variables = environment(TARGET[name])
    names = ("GRADSERVE_CACHE_DIR", "GRADSERVE_STATE", "CUPY_CACHE_DIR")
    assert mounts.keys() == {variables[each] for each in names if each in variables}
    assert len({*mounts.values()}) == len(mounts)
    assert mounts.keys() <= volumes(TARGET[name])
    assert {*mounts.values()} <= compose()["volumes"].keys()


def test_services_do_not_share_state() -> None:
    """A second server on the same state folder is refused."""
    folder = environment("cpu")["GRADSERVE_STATE"]
    sources = [mount.partition(":")[0] for name in SERVICES for mount in service(name)["volumes"] if folder in mount]
    assert len({*sources}) == len(SERVICES)


def test_gpu_service_requests_a_gpu() -> None:
    (device,) = service("gpu")["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}
