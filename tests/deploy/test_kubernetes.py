"""deploy/kubernetes: kubectl builds each overlay, which is strictly valid and agrees with the settings; no cluster."""

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
from tests.deploy.images import ROOT, SECRET_NAME, SKIP_REASON, shows_a_secret
from tests.service.cluster.ingress.support import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl, which has Kustomize"),
]

OVERLAYS = ("base", "gpu", "ray")
#: objects that go beside any overlay
MONITORING = "monitoring"
#: the version of Kubernetes that defines the objects
VERSION = "1.34"
#: definitions of the kinds that operators add to Kubernetes
DEFINITIONS = {
    "RayService": "kuberay/rayservice.json",
    "PodMonitor": "prometheus_operator/podmonitor.json",
    "PrometheusRule": "prometheus_operator/prometheusrule.json",
}


@cache
def objects(overlay: str) -> list[dict[str, Any]]:
    """The objects of an overlay."""
    yaml = pytest.importorskip("yaml", reason=SKIP_REASON)
    done = subprocess.run(
        ["kubectl", "kustomize", ROOT / "deploy/kubernetes" / overlay], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def find_object(overlay: str, kind: str, name: str) -> dict[str, Any]:
    (match,) = [each for each in objects(overlay) if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return match


def pods(overlay: str) -> Iterator[dict[str, Any]]:
    """The pod specifications of all objects."""
    for template in templates(overlay):
        yield template["spec"]


def templates(overlay: str) -> Iterator[dict[str, Any]]:
    """The pod templates of all objects."""
    for each in objects(overlay):
        if each["kind"] in ("Deployment", "StatefulSet"):
            yield each["spec"]["template"]
        if each["kind"] == "RayService":
            cluster = each["spec"]["rayClusterConfig"]
            yield from (group["template"] for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]))


def containers(overlay: str) -> Iterator[dict[str, Any]]:
    for pod in pods(overlay):
        yield from (*pod.get("initContainers", ()), *pod["containers"])


def test_overlays_are_complete_and_use_all_their_files() -> None:
    yaml = pytest.importorskip("yaml", reason=SKIP_REASON)
    folders = {file.parent.name: file for file in (ROOT / "deploy/kubernetes").glob("**/kustomization.yaml")}
    assert set(folders) == {*OVERLAYS, MONITORING}
    for file in folders.values():
        kustomization = yaml.safe_load(file.read_text(encoding="utf-8"))
        named = {*kustomization["resources"], *(patch["path"] for patch in kustomization.get("patches", ()))}
        assert {each.name for each in file.parent.glob("*.yaml")} - {file.name} == named - {"../base"}


@cache
def definition(kind: str) -> Any:
    file = Path(__file__).parent / DEFINITIONS[kind]
    return jsonschema_rs.validator_for(json.loads(file.read_text(encoding="utf-8")))


def validation_error(document: dict[str, Any]) -> str:
    """The validation error of an object; empty if it matches its definition and has no extra keys."""
    validate = pytest.importorskip("kubernetes_validate", reason=SKIP_REASON)
    try:
        if document["kind"] in DEFINITIONS:
            definition(document["kind"]).validate(document)
        else:
            validate.validate(document, VERSION, strict=True)
        if document["kind"] == "RayService":
            for pod in ray_pods(document):
                validate.validate(
                    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, **pod}, VERSION, strict=True
                )
    except (validate.ValidationError, jsonschema_rs.ValidationError) as error:
        return str(error)
    return ""


def ray_pods(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    cluster = document["spec"]["rayClusterConfig"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        yield {"spec": group["template"]["spec"]}


@pytest.mark.parametrize("overlay", [*OVERLAYS, MONITORING])
def test_every_object_is_valid(overlay: str) -> None:
    assert {
        f"{each['kind']} {each['metadata']['name']}": validation_error(each)
        for each in objects(overlay)
        if validation_error(each)
    } == {}


@pytest.mark.parametrize(
    ("overlay", "kind", "name", "key"),
    [
        ("base", "Deployment", "gradserve-node", "readinessProbe"),
        ("base", "Deployment", "gradserve-ingress", "readOnlyRootFilesystem"),
        ("base", "HorizontalPodAutoscaler", "gradserve-node", "maxReplicas"),
        ("base", "PodDisruptionBudget", "gradserve-node", "maxUnavailable"),
        ("ray", "PodDisruptionBudget", "gradserve-ingress", "unhealthyPodEvictionPolicy"),
        ("monitoring", "PodMonitor", "gradserve-ingress", "relabelings"),
        ("monitoring", "PodMonitor", "gradserve-ingress", "podMetricsEndpoints"),
        ("monitoring", "PrometheusRule", "gradserve", "annotations"),
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
def test_misspelt_key_is_detected(overlay: str, kind: str, name: str, key: str) -> None:
    document = deepcopy(find_object(overlay, kind, name))
    text = json.dumps(document)
    assert f'"{key}":' in text
    assert validation_error(document) == ""
    assert validation_error(json.loads(text.replace(f'"{key}":', f'"{key[:-1]}x":'))) != ""


def test_missing_file_is_detected(tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text("resources: [absent.yaml]\n", encoding="utf-8")
    done = subprocess.run(["kubectl", "kustomize", tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    (tmp_path / "kustomization.yaml").write_text("resourcez: []\n", encoding="utf-8")
    done = subprocess.run(["kubectl", "kustomize", tmp_path], capture_output=True, text=True, check=False)
    assert "resourcez" in done.stderr


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_container_has_minimal_privileges(overlay: str) -> None:
    for pod in pods(overlay):
        assert pod["enableServiceLinks"] is False
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["limits"]["memory"]
            # Ray writes to many places of its image.
            assert container["securityContext"].get("readOnlyRootFilesystem") or overlay == "ray"


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_setting_exists(overlay: str) -> None:
    variables = {
        variable["name"]
        for pod in pods(overlay)
        for container in pod["containers"]
        for variable in container.get("env", ())
    }
    variables |= {name for each in objects(overlay) if each["kind"] == "ConfigMap" for name in each["data"]}
    assert any(name.startswith("GRADSERVE_") for name in variables)
    assert misspelt(name for name in variables if name.startswith("GRADSERVE_")) is None


@pytest.mark.parametrize("overlay", ["base", "gpu"])
def test_requests_in_flight_can_finish_on_stop(overlay: str) -> None:
    grace = Settings.model_fields["shutdown_grace"].default
    for pod in pods(overlay):
        waits = pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
        assert pod["terminationGracePeriodSeconds"] > grace + waits


def test_servers_are_found_by_dns_name() -> None:
    port = Settings.model_fields["port"].default
    nodes = find_object("base", "Service", "gradserve-nodes")
    assert nodes["spec"]["clusterIP"] == "None"
    variables = next(pods_of("gradserve-ingress"))["env"]
    (name,) = [each["value"] for each in variables if each["name"] == "INGRESS_SERVERS"]
    assert name.startswith("gradserve-nodes.$(POD_NAMESPACE).svc.")
    assert next(pods_of("gradserve-node"))["ports"][0] == {"name": "http", "containerPort": port}


@pytest.mark.parametrize("overlay", ["base", "gpu"])
def test_server_metrics_use_the_metrics_port(overlay: str) -> None:
    node = find_object(overlay, "Deployment", "gradserve-node")["spec"]["template"]["spec"]["containers"][0]
    variables = {each["name"]: each.get("value") for each in node["env"]}
    ports = {each["name"]: each["containerPort"] for each in node["ports"]}
    assert variables["GRADSERVE_METRICS_PORT"] == str(ports["metrics"])
    assert variables["GRADSERVE_METRICS_HOST"] == "$(POD_IP)"
    assert "GRADSERVE_METRICS" not in variables


def test_ray_metrics_use_the_metrics_ports() -> None:
    yaml = pytest.importorskip("yaml", reason=SKIP_REASON)
    service = find_object("ray", "RayService", "gradserve")
    servers, ingress = yaml.safe_load(service["spec"]["serveConfigV2"])["applications"]
    assert Settings(**servers["args"]).metrics_host == "0.0.0.0"
    ports = {component_of(each): ports_of(each) for each in templates("ray")}
    assert servers["args"]["metrics_port"] == ports["node"]["metrics"]
    assert ingress["args"]["metrics"] == f":{ports['ingress']['metrics']}"
    assert ingress["args"]["port"] == ports["ingress"]["http"]


def test_ray_exports_the_metrics_of_its_head() -> None:
    head = find_object("ray", "RayService", "gradserve")["spec"]["rayClusterConfig"]["headGroupSpec"]
    assert head["rayStartParams"]["metrics-export-port"] == str(ports_of(head["template"])["metrics"])


#: jobs of the alerts, by the component that they scrape
JOBS: Final = {"node": "gradserve", "ingress": "haproxy", "head": "ray"}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_pod_monitors_scrape_every_metrics_port_once(overlay: str) -> None:
    monitors = [each["spec"] for each in objects(MONITORING) if each["kind"] == "PodMonitor"]
    for template in templates(overlay):
        scraping = [each for each in monitors if selects(each["selector"], template["metadata"]["labels"])]
        assert len(scraping) == ("metrics" in ports_of(template))
        for monitor in scraping:
            (endpoint,) = monitor["podMetricsEndpoints"]
            assert endpoint["port"] == "metrics"
            assert endpoint["relabelings"] == [{"targetLabel": "job", "replacement": JOBS[component_of(template)]}]
            assert "namespaceSelector" not in monitor, "the monitors are in the namespace of the pods"


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_prometheus_without_the_operator_scrapes_every_metrics_port_once(overlay: str) -> None:
    yaml = pytest.importorskip("yaml", reason=SKIP_REASON)
    configuration = yaml.safe_load((ROOT / "deploy/prometheus/kubernetes.yml").read_text(encoding="utf-8"))
    for template in templates(overlay):
        for port in ports_of(template):
            jobs = [job["job_name"] for job in configuration["scrape_configs"] if scrapes(job, template, port)]
            assert jobs == ([JOBS[component_of(template)]] if port == "metrics" else [])


def scrapes(job: Mapping[str, Any], template: Mapping[str, Any], port: str) -> bool:
    """Whether a job's relabeling keeps a port of a pod."""
    found = {"__meta_kubernetes_pod_container_port_name": port}
    for name, value in template["metadata"]["labels"].items():
        found[f"__meta_kubernetes_pod_label_{re.sub('[^a-zA-Z0-9_]', '_', name)}"] = value
    (rule,) = job["relabel_configs"]
    assert rule["action"] == "keep"
    return re.fullmatch(rule["regex"], ";".join(found.get(label, "") for label in rule["source_labels"])) is not None


def test_scrapes_of_haproxy_leave_out_unused_slots() -> None:
    yaml = pytest.importorskip("yaml", reason=SKIP_REASON)
    (endpoint,) = find_object(MONITORING, "PodMonitor", "gradserve-ingress")["spec"]["podMetricsEndpoints"]
    for file in ("kubernetes", "cluster"):
        configuration = yaml.safe_load((ROOT / f"deploy/prometheus/{file}.yml").read_text(encoding="utf-8"))
        (job,) = [job for job in configuration["scrape_configs"] if job["job_name"] == "haproxy"]
        assert job["params"] == endpoint["params"] == {"no-maint": ["empty"]}


def test_rules_of_the_operator_are_the_alerts() -> None:
    """`make generate` writes them."""
    yaml = pytest.importorskip("yaml", reason=SKIP_REASON)
    alerts = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text(encoding="utf-8"))
    assert find_object(MONITORING, "PrometheusRule", "gradserve")["spec"] == alerts


@pytest.mark.parametrize("component", ["node", "ingress"])
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_disruption_budget_keeps_a_pod_and_lets_one_go(overlay: str, component: str) -> None:
    (template,) = [each for each in templates(overlay) if component_of(each) == component]
    budgets = [each["spec"] for each in objects(overlay) if each["kind"] == "PodDisruptionBudget"]
    # A pod with several budgets cannot be evicted at all.
    (budget,) = [each for each in budgets if selects(each["selector"], template["metadata"]["labels"])]
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    if overlay == "ray":
        # Kubernetes knows the number of pods of its own controllers only: of others it takes no maximum, no percentage.
        assert "maxUnavailable" not in budget
        remaining = budget["minAvailable"]
    else:
        remaining = fewest_replicas(overlay, component) - budget["maxUnavailable"]
    assert isinstance(remaining, int)
    assert 1 <= remaining < fewest_replicas(overlay, component)


def fewest_replicas(overlay: str, component: str) -> int:
    """The number of pods of a component when there is little work."""
    if overlay == "ray":
        groups = find_object("ray", "RayService", "gradserve")["spec"]["rayClusterConfig"]["workerGroupSpecs"]
        return next(int(each["minReplicas"]) for each in groups if component_of(each["template"]) == component)
    if component == "node":
        return int(find_object(overlay, "HorizontalPodAutoscaler", "gradserve-node")["spec"]["minReplicas"])
    return int(find_object(overlay, "Deployment", "gradserve-ingress")["spec"]["replicas"])


def pods_of(name: str) -> Iterator[dict[str, Any]]:
    yield from find_object("base", "Deployment", name)["spec"]["template"]["spec"]["containers"]


def test_only_the_gpu_overlay_requests_gpus() -> None:
    assert "nvidia.com/gpu" not in json.dumps(objects("base"))
    node = find_object("gpu", "Deployment", "gradserve-node")["spec"]["template"]["spec"]["containers"][0]
    assert node["resources"]["limits"]["nvidia.com/gpu"] == 1
    assert node["image"] == "gradserve:cuda"


def test_rayservice_matches_the_configuration_file() -> None:
    """Arguments that depend on the environment may differ."""
    yaml = pytest.importorskip("yaml", reason=SKIP_REASON)
    service_config = yaml.safe_load(find_object("ray", "RayService", "gradserve")["spec"]["serveConfigV2"])
    file_config = yaml.safe_load((ROOT / "deploy/ray/gradserve.yaml").read_text(encoding="utf-8"))
    for one, other in zip(service_config["applications"], file_config["applications"], strict=True):
        assert (one["name"], one["import_path"]) == (other["name"], other["import_path"])
        (ours,), (theirs,) = one["deployments"], other["deployments"]
        assert ours["name"] == theirs["name"]
        assert ours.get("autoscaling_config") == theirs.get("autoscaling_config")
    assert service_config["proxy_location"] == file_config["proxy_location"] == "Disabled"


#: the pods of a Ray cluster, whose processes listen on ports of their own choice for one another
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
#: callers that may connect, by overlay, pod and port
ADMITTED: Final[Mapping[str, Mapping[tuple[str, str], set[str]]]] = {
    "base": _SERVERS,
    "gpu": _SERVERS,
    "ray": {
        ("head", "gcs"): {*RAY},
        ("head", "dashboard"): {*RAY, "operator"},
        ("head", "metrics"): {*RAY, "metrics"},
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
#: outside callers: the labels of their namespace, and of the pod
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
    return [each["spec"] for each in objects(overlay) if each["kind"] == "NetworkPolicy"]


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Match labels as Kubernetes does; of set-based expressions only `In`."""
    for expression in selector.get("matchExpressions", ()):
        assert expression["operator"] == "In"
        if labels.get(expression["key"]) not in expression["values"]:
            return False
    return set(selector.get("matchLabels", {}).items()) <= set(labels.items())


def admits(peer: Mapping[str, Any], namespace: Mapping[str, str] | None, labels: Mapping[str, str]) -> bool:
    """Whether a peer of a policy is this pod; `namespace` is None for a pod of the policy's own namespace."""
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
def test_each_pod_port_admits_only_its_callers(overlay: str) -> None:
    assert {
        (component_of(each), port): admitted(policies(overlay), overlay, each, port)
        for each in templates(overlay)
        for port in (*ports_of(each), UNNAMED)
    } == ADMITTED[overlay]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_unlisted_pod_admits_no_callers(overlay: str) -> None:
    unknown = {"metadata": {"labels": {"app.kubernetes.io/name": "gradserve"}}}
    assert admitted(policies(overlay), overlay, unknown, UNNAMED) == set()


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_policy_selectors_and_ports_match_pods(overlay: str) -> None:
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
def test_commands_and_probes_contain_no_secret(overlay: str) -> None:
    for container in containers(overlay):
        secrets = {each["name"] for each in container.get("env", ()) if "secretKeyRef" in each.get("valueFrom", {})}
        assert not any("secretRef" in each for each in container.get("envFrom", ())), "it would hide their names"
        run = [container.get(name) for name in ("command", "args", "lifecycle")]
        run += [container.get(f"{name}Probe") for name in ("liveness", "readiness", "startup")]
        assert not shows_a_secret(run, secrets), container["name"]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_secrets_are_only_referenced(overlay: str) -> None:
    for container in containers(overlay):
        for variable in container.get("env", ()):
            assert not SECRET_NAME.search(variable["name"]) or "secretKeyRef" in variable["valueFrom"], variable
    for each in objects(overlay):
        assert each["kind"] != "Secret"
        assert each["kind"] != "ConfigMap" or not any(map(SECRET_NAME.search, each["data"]))


def test_ray_requires_a_token() -> None:
    """Ray has tokens since 2.52. The operator must reach the dashboard, so the dashboard must require one."""
    cluster = find_object("ray", "RayService", "gradserve")["spec"]["rayClusterConfig"]
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
def test_redis_requires_a_password_hidden_from_the_process_list(tmp_path: Path) -> None:
    """The container's own command, with a folder and a port of this machine."""
    (tmp_path / "password").write_text("s3cret", encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    redis = find_object("ray", "StatefulSet", "gradserve-redis")["spec"]["template"]["spec"]["containers"][0]
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
