"""deploy/kubernetes: each overlay is made by kubectl, read strictly, and agrees with the settings; no cluster."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, Final

import jsonschema_rs
import pytest

from service.core.settings import Settings, misspelt
from tests.deploy.images import ROOT, SECRET_NAME, WHY, shows_a_secret
from tests.service.cluster.ingress.support import wait_until

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
    for template in templates(overlay):
        yield template["spec"]


def templates(overlay: str) -> Iterator[dict[str, Any]]:
    """The templates of pods, wherever they lie."""
    for each in made(overlay):
        if each["kind"] in ("Deployment", "StatefulSet"):
            yield each["spec"]["template"]
        if each["kind"] == "RayService":
            cluster = each["spec"]["rayClusterConfig"]
            yield from (group["template"] for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]))


def containers(overlay: str) -> Iterator[dict[str, Any]]:
    for pod in pods(overlay):
        yield from (*pod.get("initContainers", ()), *pod["containers"])


def test_these_are_all_overlays_and_each_has_all_of_its_files() -> None:
    yaml = pytest.importorskip("yaml", reason=WHY)
    folders = {file.parent.name: file for file in (ROOT / "deploy/kubernetes").glob("**/kustomization.yaml")}
    assert set(folders) == set(OVERLAYS)
    for file in folders.values():
        kustomization = yaml.safe_load(file.read_text(encoding="utf-8"))
        named = {*kustomization["resources"], *(patch["path"] for patch in kustomization.get("patches", ()))}
        assert {each.name for each in file.parent.glob("*.yaml")} - {file.name} == named - {"../base"}


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
        ("ray", "RayService", "gradserve", "authOptions"),
        ("ray", "StatefulSet", "gradserve-redis", "volumeClaimTemplates"),
        ("base", "NetworkPolicy", "gradserve-node", "podSelector"),
        ("ray", "NetworkPolicy", "gradserve-head", "namespaceSelector"),
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
    assert next(pods_of("gradserve-node"))["ports"][0] == {"name": "http", "containerPort": port}


@pytest.mark.parametrize("overlay", ["base", "gpu"])
def test_servers_have_their_metrics_on_the_port_of_that_name(overlay: str) -> None:
    node = of(overlay, "Deployment", "gradserve-node")["spec"]["template"]["spec"]["containers"][0]
    variables = {each["name"]: each.get("value") for each in node["env"]}
    ports = {each["name"]: each["containerPort"] for each in node["ports"]}
    assert variables["GRADSERVE_METRICS_PORT"] == str(ports["metrics"])
    assert variables["GRADSERVE_METRICS_HOST"] == "$(POD_IP)"
    assert "GRADSERVE_METRICS" not in variables


def test_under_ray_metrics_are_on_the_ports_of_that_name() -> None:
    yaml = pytest.importorskip("yaml", reason=WHY)
    service = of("ray", "RayService", "gradserve")
    servers, ingress = yaml.safe_load(service["spec"]["serveConfigV2"])["applications"]
    assert Settings(**servers["args"]).metrics_host == "0.0.0.0"
    ports = {component_of(each): ports_of(each) for each in templates("ray")}
    assert servers["args"]["metrics_port"] == ports["node"]["metrics"]
    assert ingress["args"]["metrics"] == f":{ports['ingress']['metrics']}"
    assert ingress["args"]["port"] == ports["ingress"]["http"]


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


#: the pods of a Ray cluster: their processes listen on ports of their own choice, for one another
RAY: Final = frozenset({"head", "node", "ingress"})
#: a port that no container names
UNNAMED: Final = "any other port"
_SERVERS: Final = {
    ("node", "http"): {"node", "ingress"},
    ("node", "metrics"): {"metrics"},
    ("node", UNNAMED): set[str](),
    ("ingress", "http"): {"callers"},
    ("ingress", "metrics"): {"metrics"},
    ("ingress", UNNAMED): set[str](),
}
#: by overlay, pod and port: who may connect
ADMITTED: Final[Mapping[str, Mapping[tuple[str, str], set[str]]]] = {
    "base": _SERVERS,
    "gpu": _SERVERS,
    "ray": {
        ("head", "gcs"): {*RAY},
        ("head", "dashboard"): {*RAY, "operator"},
        ("head", UNNAMED): {*RAY},
        ("node", "metrics"): {*RAY, "metrics"},
        ("node", UNNAMED): {*RAY},
        ("ingress", "http"): {*RAY, "callers"},
        ("ingress", "metrics"): {*RAY, "metrics"},
        ("ingress", UNNAMED): {*RAY},
        ("redis", "redis"): {"head"},
        ("redis", UNNAMED): set[str](),
    },
}
#: who is outside: the labels of their namespace, and of the pod
OUTSIDE: Final = {
    "callers": ({"gradserve-callers": "allowed"}, {}),
    "metrics": ({"gradserve-metrics": "allowed"}, {}),
    "operator": ({"gradserve-operator": "allowed"}, {"app.kubernetes.io/name": "kuberay-operator"}),
    "a neighbour of the operator": ({"gradserve-operator": "allowed"}, {}),
    "a pod beside it": ({}, {}),
    "one that says it is the operator": ({}, {"app.kubernetes.io/name": "kuberay-operator"}),
}


def component_of(template: dict[str, Any]) -> str:
    return str(template["metadata"]["labels"]["app.kubernetes.io/component"])


def ports_of(template: dict[str, Any]) -> dict[str, int]:
    """The ports that the containers of a pod name."""
    named = (port for container in template["spec"]["containers"] for port in container.get("ports", ()))
    return {port["name"]: port["containerPort"] for port in named}


def policies(overlay: str) -> list[dict[str, Any]]:
    return [each["spec"] for each in made(overlay) if each["kind"] == "NetworkPolicy"]


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Match labels as Kubernetes does; of set-based expressions only `In`."""
    for expression in selector.get("matchExpressions", ()):
        assert expression["operator"] == "In"
        if labels.get(expression["key"]) not in expression["values"]:
            return False
    return set(selector.get("matchLabels", {}).items()) <= set(labels.items())


def admits(peer: Mapping[str, Any], namespace: Mapping[str, str] | None, labels: Mapping[str, str]) -> bool:
    """Whether a peer of a policy is this pod; one of the policy's own namespace where `namespace` is None."""
    assert set(peer) <= {"namespaceSelector", "podSelector"}, "no addresses"
    if ("namespaceSelector" in peer) is (namespace is None):
        return False
    return selects(peer.get("namespaceSelector", {}), namespace or {}) and selects(peer.get("podSelector", {}), labels)


def admitted(network_policies: list[dict[str, Any]], overlay: str, target: dict[str, Any], port: str) -> set[str]:
    """List the pods that these policies let connect to a port of a pod."""
    applying = [each for each in network_policies if selects(each["podSelector"], target["metadata"]["labels"])]
    callers = {component_of(each): (None, each["metadata"]["labels"]) for each in templates(overlay)} | OUTSIDE
    if not any("Ingress" in each["policyTypes"] for each in applying):
        return set(callers)
    rules = [rule for each in applying for rule in each.get("ingress", ())]
    assert all(rule["from"] for rule in rules), "an empty list would be everybody"
    return {
        name
        for name, (namespace, labels) in callers.items()
        for rule in rules
        if any(admits(peer, namespace, labels) for peer in rule["from"])
        and ("ports" not in rule or port in [each["port"] for each in rule["ports"]])
    }


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_each_port_of_each_pod_admits_those_who_need_it_and_nobody_else(overlay: str) -> None:
    assert {
        (component_of(each), port): admitted(policies(overlay), overlay, each, port)
        for each in templates(overlay)
        for port in (*ports_of(each), UNNAMED)
    } == ADMITTED[overlay]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_pod_that_nobody_thought_of_admits_nobody(overlay: str) -> None:
    unknown = {"metadata": {"labels": {"app.kubernetes.io/name": "gradserve"}}}
    assert admitted(policies(overlay), overlay, unknown, UNNAMED) == set()


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_selector_and_port_of_a_policy_is_of_a_pod(overlay: str) -> None:
    for policy in policies(overlay):
        targets = [each for each in templates(overlay) if selects(policy["podSelector"], each["metadata"]["labels"])]
        assert targets
        for rule in policy.get("ingress", ()):
            for peer in rule["from"]:
                if "namespaceSelector" not in peer:
                    assert any(selects(peer["podSelector"], each["metadata"]["labels"]) for each in templates(overlay))
            for port in rule.get("ports", ()):
                assert all(port["port"] in ports_of(each) for each in targets)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_no_command_and_no_probe_shows_a_secret(overlay: str) -> None:
    for container in containers(overlay):
        secrets = {each["name"] for each in container.get("env", ()) if "secretKeyRef" in each.get("valueFrom", {})}
        assert not any("secretRef" in each for each in container.get("envFrom", ())), "it would hide their names"
        run = [container.get(name) for name in ("command", "args", "lifecycle")]
        run += [container.get(f"{name}Probe") for name in ("liveness", "readiness", "startup")]
        assert not shows_a_secret(run, secrets), container["name"]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_secrets_are_not_written_down(overlay: str) -> None:
    for container in containers(overlay):
        for variable in container.get("env", ()):
            assert not SECRET_NAME.search(variable["name"]) or "secretKeyRef" in variable["valueFrom"], variable
    for each in made(overlay):
        assert each["kind"] != "Secret"
        assert each["kind"] != "ConfigMap" or not any(map(SECRET_NAME.search, each["data"]))


def test_ray_asks_for_its_token() -> None:
    """Ray has tokens from 2.52 on. The dashboard has to be reached by the operator, so it has to ask for one."""
    cluster = of("ray", "RayService", "gradserve")["spec"]["rayClusterConfig"]
    assert cluster["authOptions"] == {"mode": "token"}
    assert tuple(map(int, cluster["rayVersion"].split("."))) >= (2, 52)
    for container in containers("ray"):
        assert not {"RAY_AUTH_MODE", "RAY_AUTH_TOKEN"} & {each["name"] for each in container.get("env", ())}
    dockerfile = (ROOT / "deploy/ray/Dockerfile").read_text(encoding="utf-8")
    assert f"FROM rayproject/ray:{cluster['rayVersion']}-" in dockerfile
    assert re.search("^ENV RAY_AUTH_MODE=token$", dockerfile, re.MULTILINE)


@pytest.mark.skipif(
    shutil.which("redis-server") is None, reason="there is no redis-server (apt-get install redis-server)"
)
def test_redis_asks_for_the_password_and_nobody_sees_it(tmp_path: Path) -> None:
    """The container's own command, with a folder and a port of this machine."""
    (tmp_path / "password").write_text("s3cret", encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    redis = of("ray", "StatefulSet", "gradserve-redis")["spec"]["template"]["spec"]["containers"][0]
    script = (
        redis["command"][-1].replace("/run/redis", str(tmp_path)).replace("dir /data", f"dir {tmp_path}\nport {port}")
    )
    process = subprocess.Popen([*redis["command"][:-1], script], stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: ask_redis(port, "PING") is not None)
        assert (ask_redis(port, "PING") or "").startswith("-NOAUTH")
        assert ask_redis(port, "AUTH s3cret") == "+OK"
        command = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        assert command.startswith(b"redis-server")
        assert b"s3cret" not in command
    finally:
        process.terminate()
        assert process.wait(30) == 0


def ask_redis(port: int, command: str) -> str | None:
    """Send a command to Redis and return its reply, or None if nothing listens."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            connection.sendall(f"{command}\r\n".encode())
            return connection.recv(1000).decode().strip()
    except ConnectionRefusedError:
        return None
