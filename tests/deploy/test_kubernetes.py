"""deploy/kubernetes: each overlay is made by kubectl, read strictly, and agrees with the settings; no cluster."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from service.settings import Settings, misspelt
from tests.deploy.images import ROOT, WHY

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl, which has Kustomize"),
]

OVERLAYS = ("base", "gpu", "ray")
#: whose definitions of objects are held to
VERSION = "1.34"
KUBERAY = Path(__file__).parent / "kuberay/rayservice.json"


@cache
def made(overlay: str) -> list[dict[str, Any]]:
    """The objects of an overlay."""
    yaml = pytest.importorskip("yaml", reason=WHY)
    done = subprocess.run(
        ["kubectl", "kustomize", ROOT / "deploy/kubernetes" / overlay], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def of(overlay: str, kind: str, name: str) -> dict[str, Any]:
    (found,) = [each for each in made(overlay) if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


def pods(overlay: str) -> Iterator[dict[str, Any]]:
    """The specifications of pods, wherever they lie."""
    for each in made(overlay):
        if each["kind"] in ("Deployment", "StatefulSet"):
            yield each["spec"]["template"]["spec"]
        if each["kind"] == "RayService":
            cluster = each["spec"]["rayClusterConfig"]
            yield from (group["template"]["spec"] for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]))


@cache
def kuberay() -> Any:
    return jsonschema_rs.validator_for(json.loads(KUBERAY.read_text(encoding="utf-8")))


def complaints(document: dict[str, Any]) -> str:
    """What is wrong with an object; nothing where it is as its definition says, with no key more."""
    validate = pytest.importorskip("kubernetes_validate", reason=WHY)
    try:
        if document["kind"] == "RayService":
            kuberay().validate(document)
            for pod in ray_pods(document):
                validate.validate(
                    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, **pod}, VERSION, strict=True
                )
        else:
            validate.validate(document, VERSION, strict=True)
    except (validate.ValidationError, jsonschema_rs.ValidationError) as error:
        return str(error)
    return ""


def ray_pods(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    cluster = document["spec"]["rayClusterConfig"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        yield {"spec": group["template"]["spec"]}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_object_is_valid(overlay: str) -> None:
    assert {
        f"{each['kind']} {each['metadata']['name']}": complaints(each) for each in made(overlay) if complaints(each)
    } == {}


@pytest.mark.parametrize(
    ("overlay", "kind", "name", "key"),
    [
        ("base", "Deployment", "gradserve-node", "readinessProbe"),
        ("base", "Deployment", "gradserve-ingress", "readOnlyRootFilesystem"),
        ("base", "HorizontalPodAutoscaler", "gradserve-node", "maxReplicas"),
        ("base", "PodDisruptionBudget", "gradserve-node", "maxUnavailable"),
        ("base", "Service", "gradserve-nodes", "clusterIP"),
        ("ray", "RayService", "gradserve", "workerGroupSpecs"),
        ("ray", "RayService", "gradserve", "minReplicas"),
        ("ray", "RayService", "gradserve", "redisAddress"),
        ("ray", "RayService", "gradserve", "terminationGracePeriodSeconds"),
        ("ray", "StatefulSet", "gradserve-redis", "volumeClaimTemplates"),
    ],
)
def test_a_misspelt_key_is_noticed(overlay: str, kind: str, name: str, key: str) -> None:
    document = deepcopy(of(overlay, kind, name))
    text = json.dumps(document)
    assert f'"{key}":' in text
    assert complaints(document) == ""
    assert complaints(json.loads(text.replace(f'"{key}":', f'"{key[:-1]}x":'))) != ""


def test_a_file_that_is_not_there_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text("resources: [absent.yaml]\n", encoding="utf-8")
    done = subprocess.run(["kubectl", "kustomize", tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    (tmp_path / "kustomization.yaml").write_text("resourcez: []\n", encoding="utf-8")
    done = subprocess.run(["kubectl", "kustomize", tmp_path], capture_output=True, text=True, check=False)
    assert "resourcez" in done.stderr


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_container_may_do_little(overlay: str) -> None:
    for pod in pods(overlay):
        assert pod["enableServiceLinks"] is False
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["limits"]["memory"]
            # What Ray writes lies all over its image.
            assert container["securityContext"].get("readOnlyRootFilesystem") or overlay == "ray"


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_setting_is_one(overlay: str) -> None:
    stated = {
        variable["name"]
        for pod in pods(overlay)
        for container in pod["containers"]
        for variable in container.get("env", ())
    }
    stated |= {name for each in made(overlay) if each["kind"] == "ConfigMap" for name in each["data"]}
    assert any(name.startswith("GRADSERVE_") for name in stated)
    assert misspelt(name for name in stated if name.startswith("GRADSERVE_")) is None


@pytest.mark.parametrize("overlay", ["base", "gpu"])
def test_work_in_flight_may_end(overlay: str) -> None:
    grace = Settings.model_fields["shutdown_grace"].default
    for pod in pods(overlay):
        waits = pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
        assert pod["terminationGracePeriodSeconds"] > grace + waits


def test_servers_are_found_by_their_name() -> None:
    port = Settings.model_fields["port"].default
    nodes = of("base", "Service", "gradserve-nodes")
    assert nodes["spec"]["clusterIP"] == "None"
    variables = next(pods_of("gradserve-ingress"))["env"]
    (name,) = [each["value"] for each in variables if each["name"] == "INGRESS_SERVERS"]
    assert name.startswith("gradserve-nodes.$(POD_NAMESPACE).svc.")
    assert next(pods_of("gradserve-node"))["ports"] == [{"name": "http", "containerPort": port}]


def pods_of(name: str) -> Iterator[dict[str, Any]]:
    yield from of("base", "Deployment", name)["spec"]["template"]["spec"]["containers"]


def test_only_the_overlay_with_cards_asks_for_them() -> None:
    assert "nvidia.com/gpu" not in json.dumps(made("base"))
    node = of("gpu", "Deployment", "gradserve-node")["spec"]["template"]["spec"]["containers"][0]
    assert node["resources"]["limits"]["nvidia.com/gpu"] == 1
    assert node["image"] == "gradserve:cuda"


def test_rays_configuration_is_the_one_for_its_own_command() -> None:
    """But for what depends on where it runs."""
    yaml = pytest.importorskip("yaml", reason=WHY)
    here = yaml.safe_load(of("ray", "RayService", "gradserve")["spec"]["serveConfigV2"])
    there = yaml.safe_load((ROOT / "deploy/ray/gradserve.yaml").read_text(encoding="utf-8"))
    for one, other in zip(here["applications"], there["applications"], strict=True):
        assert (one["name"], one["import_path"]) == (other["name"], other["import_path"])
        (mine,), (theirs,) = one["deployments"], other["deployments"]
        assert mine["name"] == theirs["name"]
        assert mine.get("autoscaling_config") == theirs.get("autoscaling_config")
    assert here["proxy_location"] == there["proxy_location"] == "Disabled"
