"""compose.yaml: valid, confined, and agreeing with the Dockerfile and the settings."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from service.core.settings import Settings
from tests.deploy.images import ROOT, SECRET_NAME, WHY, compose, environment, health, shows_a_secret, stages, volumes

SERVICES = ("cpu", "gpu")
TARGET = {"cpu": "cpu", "gpu": "cuda"}


def service(name: str) -> dict[str, Any]:
    return compose()["services"][name]


def validated(document: dict[str, Any]) -> Any:
    """The document, as a reader of the Compose specification understands it. Raises ValueError."""
    return pytest.importorskip("compose_spec", reason=WHY).PyCompose.from_yaml(json.dumps(document))


def test_it_follows_the_compose_specification() -> None:
    assert set(validated(compose()).service_names()) == set(SERVICES)


def test_a_misspelt_field_is_noticed() -> None:
    with pytest.raises(ValueError, match="readonly"):
        validated({"services": {"cpu": {"image": "x", "readonly": True}}})


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_is_confined(name: str) -> None:
    given = service(name)
    assert given["read_only"] is True
    assert given["cap_drop"] == ["ALL"]
    assert given["security_opt"] == ["no-new-privileges:true"]
    assert [entry.partition(":")[0] for entry in given["tmpfs"]] == ["/tmp"]
    assert given["mem_limit"]
    assert given["pids_limit"]
    assert not {"privileged", "cap_add", "user", "network_mode", "pid"} & set(given)


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_is_reached_from_this_machine_only(name: str) -> None:
    (port,) = service(name)["ports"]
    address, _, inside = port.split(":")
    assert address == "127.0.0.1"
    assert int(inside) == Settings.model_fields["port"].default


COMPOSE_FILES = [ROOT / "compose.yaml", *(ROOT / "deploy").glob("**/*compose*.yaml")]


@pytest.mark.parametrize("file", COMPOSE_FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_secrets_come_from_the_environment_and_are_on_no_command_line(file: Path) -> None:
    document = pytest.importorskip("yaml", reason=WHY).safe_load(file.read_text(encoding="utf-8"))
    for service_name, given in document["services"].items():
        secrets = {name: value for name, value in given.get("environment", {}).items() if SECRET_NAME.search(name)}
        assert all(re.match(r"\$\{[A-Z_]+:\?", value) for value in secrets.values()), service_name
        named = {*secrets, *(value[2:].partition(":")[0] for value in secrets.values())}
        run = [given.get("command"), given.get("entrypoint"), given.get("healthcheck")]
        assert not shows_a_secret(run, named), service_name


def test_a_command_that_shows_a_secret_is_noticed() -> None:
    for shown in ("--password=$PASSWORD", "$$PASSWORD", "${PASSWORD}", "${PASSWORD:?}", "$(PASSWORD)"):
        assert shows_a_secret(["sh", "-c", shown], ["PASSWORD"])
    assert not shows_a_secret(["sh", "-c", "$PASSWORD_FILE"], ["PASSWORD"])


@pytest.mark.parametrize("name", SERVICES)
def test_no_service_starts_without_a_key(name: str) -> None:
    """Compose itself says so, where the variable is missing or empty."""
    assert service(name)["environment"]["GRADSERVE_API_KEY"].startswith("${GRADSERVE_API_KEY:?")


def test_the_services_can_run_side_by_side() -> None:
    assert len({service(name)["ports"][0].split(":")[1] for name in SERVICES}) == len(SERVICES)


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_builds_a_target(name: str) -> None:
    assert service(name)["build"]["target"] == TARGET[name]
    assert TARGET[name] in stages()


@pytest.mark.parametrize("name", SERVICES)
def test_the_health_check_is_the_images(name: str) -> None:
    assert service(name)["healthcheck"]["test"] == health(TARGET[name])


@pytest.mark.parametrize("name", SERVICES)
def test_work_in_flight_may_end(name: str) -> None:
    grace = service(name)["stop_grace_period"]
    assert grace.endswith("s")
    assert int(grace.removesuffix("s")) > Settings.model_fields["shutdown_grace"].default


def test_only_the_gpu_waits_for_its_profile() -> None:
    assert service("gpu")["profiles"] == ["gpu"]
    assert "profiles" not in service("cpu")


@pytest.mark.parametrize("name", SERVICES)
def test_what_is_compiled_is_kept(name: str) -> None:
    mounts = dict(reversed(mount.split(":")) for mount in service(name)["volumes"])
    variables = environment(TARGET[name])
    kept = ("GRADSERVE_CACHE_DIR", "GRADSERVE_STATE", "CUPY_CACHE_DIR")
    assert mounts.keys() == {variables[each] for each in kept if each in variables}
    assert len({*mounts.values()}) == len(mounts)
    assert mounts.keys() <= volumes(TARGET[name])
    assert {*mounts.values()} <= compose()["volumes"].keys()


def test_no_two_services_share_their_state() -> None:
    """The second server on a folder of state is refused."""
    folder = environment("cpu")["GRADSERVE_STATE"]
    found = [mount.partition(":")[0] for name in SERVICES for mount in service(name)["volumes"] if folder in mount]
    assert len({*found}) == len(SERVICES)


def test_the_gpu_service_asks_for_a_gpu() -> None:
    (device,) = service("gpu")["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}
