"""The dashboard and the alerts use existing metrics and work as documented."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from service.cluster.ingress.configuration import IngressLayout, configuration
from service.core.errors import KINDS
from service.core.settings import Settings
from service.web.listening import bind_socket
from tests.architecture.source import files
from tests.conftest import RunningServer
from tests.deploy.monitoring import (
    PROMETHEUS,
    ROOT,
    RULES,
    TESTS,
    Selector,
    alerts,
    exposed,
    expressions,
    known,
    names_of,
    panels,
    queried,
    selectors,
)
from tests.sampling import together
from tests.service.cluster.ingress.support import ingress, needs_haproxy, nodes
from tests.service.support import SQUARES, tensor

OPERATIONS = ROOT / "docs" / "operations.md"
EXPRESSIONS = expressions()
#: the annotation that has data only after a start
_STARTS = "annotation starts"
_EVENT_ONLY = {_STARTS, *(alert["alert"] for alert in alerts())}
#: expressions without data on a single server, which has no shards and no peers
_CLUSTER_ONLY = {
    where
    for where, text in EXPRESSIONS.items()
    if re.search(r"gradserve_(shard|takeovers|looks|passed_on|address)", text) and where not in _EVENT_ONLY
}
SELECTORS = sorted({(where, each) for where, text in EXPRESSIONS.items() for each in selectors(text)})
_UNPACKED = ROOT / "build" / "prometheus" / "usr" / "bin"
PROMTOOL, SERVER = (shutil.which(tool) or shutil.which(tool, path=_UNPACKED) for tool in ("promtool", "prometheus"))
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="there is no promtool: make promtool")


@together
@pytest.mark.parametrize(("where", "selector"), SELECTORS, ids=lambda value: value if isinstance(value, str) else "")
def test_queried_metrics_and_labels_exist(where: str, selector: Selector) -> None:
    assert selector.name in known(), f"{where}: nothing exposes {selector.name}"
    assert {label for label, _ in selector.matchers} <= known()[selector.name]


@pytest.mark.parametrize("where", EXPRESSIONS)
def test_grouping_labels_exist(where: str) -> None:
    text = EXPRESSIONS[where]
    grouping = {label for listed in re.findall(r"(?:by|on) \(([^)]*)\)", text) for label in listed.split(", ") if label}
    assert grouping <= {label for each in selectors(text) for label in known()[each.name]}


def test_legend_labels_exist() -> None:
    for panel in panels():
        for target in panel.get("targets", ()):
            named = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            grouping = {
                label for listed in re.findall(r"by \(([^)]*)\)", target["expr"]) for label in listed.split(", ")
            }
            assert named <= grouping | {"instance"}, panel["title"]


def values(metric: str, label: str) -> set[str]:
    """The values that matchers of a label name, with alternatives split."""
    matched = [value for _, each in SELECTORS if each.name == metric for name, value in each.matchers if name == label]
    return {alternative for value in matched for alternative in value.split("|")}


def test_compared_settings_exist() -> None:
    names = values("gradserve_setting", "name")
    assert names
    assert names <= {name for name, value in Settings(device="cpu") if isinstance(value, int | float)}


def test_queried_codes_exist() -> None:
    assert values("gradserve_state_commits_total", "outcome") <= {"written", *KINDS}
    assert values("gradserve_requests_denied_total", "reason") <= set(KINDS)
    statuses = {str(kind.status) for kind in KINDS.values()}
    assert values("gradserve_requests_total", "status") - {"5.."} <= statuses


def test_queried_worker_restart_reasons_exist() -> None:
    reasons = values("gradserve_worker_restarts_total", "reason")
    source = "".join(path.read_text(encoding="utf-8") for path in files("service/workers", "service/workers"))
    assert "died" in reasons
    assert not [reason for reason in reasons if f'"{reason}"' not in source]


def test_queried_reasons_of_moves_exist() -> None:
    assert values("gradserve_shard_moves_total", "reason") <= {"free", "handed_over", "unresponsive", "without_store"}


def test_queried_sections_of_haproxy_exist() -> None:
    text = configuration(IngressLayout(listen=":8000"))
    for kind in ("frontend", "backend"):
        for name in queried(f"haproxy_{kind}_"):
            assert values(name, "proxy")
            assert all(f"{kind} {proxy}\n" in text for proxy in values(name, "proxy"))


def test_jobs_of_alerts_are_scraped() -> None:
    jobs = values("up", "job") | values("process_start_time_seconds", "job")
    assert jobs == {"gradserve", "haproxy", "ray"} == set(scraped_jobs("kubernetes"))
    assert set(scraped_jobs("cluster")) == {"gradserve", "haproxy"}


@needs_haproxy
def test_haproxy_exposes_queried_metrics() -> None:
    with bind_socket("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    with nodes(1) as (node,), ingress(nodes=(node.place,), metrics=f"127.0.0.1:{port}") as running:
        running.settle("gs1")
        (job,) = (job for name, job in scraped_jobs("cluster").items() if name == "haproxy")
        answer = httpx.get(f"http://127.0.0.1:{port}/metrics", params=job["params"], trust_env=False, timeout=30)
    assert queried("haproxy_") <= names_of(answer.text)
    assert 'server="gs1"' in answer.text
    assert 'server="gs2"' not in answer.text, "a slot without a server"


def scraped_jobs(file: str) -> dict[str, Any]:
    """The jobs of a Prometheus configuration, by name."""
    document = yaml.safe_load((PROMETHEUS / f"{file}.yml").read_text(encoding="utf-8"))
    return {job["job_name"]: job for job in document["scrape_configs"]}


def test_missing_metrics_are_detected() -> None:
    parsed = set(selectors('rate(gradserve_requests{call="a"}[5m]) / process_open_fds > up * node_load1{x!="up"}'))
    assert {each.name for each in parsed} == {"gradserve_requests", "process_open_fds", "up", "node_load1"}
    assert Selector("gradserve_requests", (("call", "a"),)) in parsed
    assert not {"gradserve_requests", "node_load1"} & set(known())


def test_every_alert_has_a_severity_and_a_summary() -> None:
    names = [alert["alert"] for alert in alerts()]
    assert len(set(names)) == len(names)
    for alert in alerts():
        assert alert["labels"]["severity"] in ("page", "ticket")
        assert "{{ $labels.instance }}" in alert["annotations"]["summary"]


def test_every_alert_has_a_runbook() -> None:
    headings = re.findall(r"^### (Gradserve\w+)$", OPERATIONS.read_text(encoding="utf-8"), re.MULTILINE)
    assert headings == [alert["alert"] for alert in alerts()]


def test_every_alert_fires_in_a_rule_test() -> None:
    tests = yaml.safe_load(TESTS.read_text(encoding="utf-8"))["tests"]
    fired = {case["alertname"] for test in tests for case in test["alert_rule_test"] if case["exp_alerts"]}
    assert fired == {alert["alert"] for alert in alerts()}


def test_panels_have_unique_titles_and_do_not_overlap() -> None:
    drawn = [panel for panel in panels() if panel["type"] != "row"]
    for key in ("id", "title"):
        entries = [panel[key] for panel in panels()]
        assert len(set(entries)) == len(entries)
    assert all(panel["targets"] and panel["fieldConfig"]["defaults"]["unit"] for panel in drawn)
    taken = [cell for panel in panels() for cell in cells(panel["gridPos"])]
    assert len(set(taken)) == len(taken)
    assert max(x for x, _ in taken) < 24


def cells(place: dict[str, int]) -> list[tuple[int, int]]:
    """The cells of the grid that a panel occupies."""
    return [(place["x"] + i, place["y"] + j) for i in range(place["w"]) for j in range(place["h"])]


def test_guide_lists_every_metric() -> None:
    page = (ROOT / "docs" / "guide" / "limits-and-operations.md").read_text(encoding="utf-8")
    written = set(re.findall(r"`(gradserve_\w+)`", page))
    families = {
        re.sub(r"_(bucket|sum|count|created)$", "", name) for name in exposed() if name.startswith("gradserve_")
    }
    assert families == written


def promtool(*arguments: str) -> None:
    """Run promtool, and fail with its output if it reports an error."""
    assert PROMTOOL is not None
    done = subprocess.run([PROMTOOL, *arguments], cwd=PROMETHEUS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_promtool_accepts_rules_and_configuration() -> None:
    promtool("check", "rules", RULES.name)
    promtool("check", "config", "prometheus.yml")
    promtool("check", "config", "cluster.yml")


@needs_promtool
def test_promtool_accepts_the_configuration_for_kubernetes(tmp_path: Path) -> None:
    """Debian's promtool knows no Kubernetes, so the discovery is replaced."""
    document = yaml.safe_load((PROMETHEUS / "kubernetes.yml").read_text(encoding="utf-8"))
    for job in document["scrape_configs"]:
        assert job.pop("kubernetes_sd_configs") == [{"role": "pod"}]
        job["static_configs"] = [{"targets": ["10.0.0.7:8001"]}]
    (tmp_path / "alerts.yml").write_bytes(RULES.read_bytes())
    (tmp_path / "kubernetes.yml").write_text(yaml.safe_dump(document), encoding="utf-8")
    promtool("check", "config", str(tmp_path / "kubernetes.yml"))


@needs_promtool
def test_alert_rules_pass_their_tests() -> None:
    promtool("test", "rules", TESTS.name)


@needs_promtool
def test_promtool_accepts_dashboard_expressions(tmp_path: Path) -> None:
    rules = [{"record": f"dashboard:{i}", "expr": text} for i, text in enumerate(EXPRESSIONS.values())]
    (tmp_path / "rules.yml").write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    promtool("check", "rules", str(tmp_path / "rules.yml"))


class Prometheus:
    """Client of a Prometheus that scrapes a server every second."""

    def __init__(self, url: str) -> None:
        self._url = url

    def ask(self, path: str, **parameters: str) -> Any:
        """The data of an answer; None while Prometheus starts."""
        try:
            answer = httpx.get(f"{self._url}/api/v1/{path}", params=parameters, trust_env=False, timeout=30)
        except httpx.TransportError:
            return None
        if answer.status_code == 503:
            return None
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    def until(self, query: str) -> None:
        """Wait until a query has a result."""
        deadline = time.monotonic() + 120
        while not (self.ask("query", query=query) or {}).get("result"):
            assert time.monotonic() < deadline, f"there is still nothing for {query}"
            time.sleep(0.2)  # between two queries


@contextmanager
def scraping(target: str, folder: Path) -> Iterator[Prometheus]:
    """Run a Prometheus with the alerts and a single target."""
    configuration = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text(encoding="utf-8"))
    configuration["global"]["scrape_interval"] = "1s"
    configuration["rule_files"] = [str(RULES)]
    configuration["scrape_configs"][0]["static_configs"][0]["targets"] = [target]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration))
    with bind_socket("127.0.0.1", 0) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    assert SERVER is not None
    flags = {"config.file": folder / "prometheus.yml", "storage.tsdb.path": folder, "web.listen-address": address}
    process = subprocess.Popen(
        [SERVER, *(f"--{name}={value}" for name, value in flags.items())], stderr=subprocess.DEVNULL, cwd=folder
    )
    try:
        yield Prometheus(f"http://{address}")
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.skipif(SERVER is None, reason="there is no prometheus: make promtool")
def test_prometheus_has_data_for_every_panel(server: RunningServer, tmp_path: Path) -> None:
    with scraping("{}:{}".format(*server.address), tmp_path) as prometheus:
        prometheus.until('count_over_time(up{job="gradserve"}[5m]) > 1')
        httpx.post(f"{server.url}/v1/gradients", json=SQUARES, timeout=60).raise_for_status()
        httpx.put(f"{server.url}/v1/tensors/w", json=tensor([2], [1, 2]), timeout=60).raise_for_status()
        prometheus.until("gradserve_tensors > 0 and on (instance) increase(process_cpu_seconds_total[5m]) > 0")
        prometheus.until('count_over_time(gradserve_request_seconds_count{call="gradients"}[5m]) > 1')
        drawn = {where: text for where, text in EXPRESSIONS.items() if where not in _EVENT_ONLY | _CLUSTER_ONLY}
        empty = [where for where, text in drawn.items() if not prometheus.ask("query", query=text)["result"]]
        assert not empty
        rules = [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]
        assert {rule["name"]: rule["state"] for rule in rules} == dict.fromkeys(_EVENT_ONLY - {_STARTS}, "inactive")
