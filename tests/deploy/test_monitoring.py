"""The dashboard and the alerts: they rest on metrics that exist, and do what they say."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from service.errors import KINDS
from service.settings import Settings
from tests.architecture.source import files
from tests.deploy.monitoring import (
    PROMETHEUS,
    ROOT,
    RULES,
    TESTS,
    Selector,
    alerts,
    exposed,
    expressions,
    panels,
    selectors,
)

OPERATIONS = ROOT / "docs" / "operations.md"
EXPRESSIONS = expressions()
SELECTORS = sorted({(where, each) for where, text in EXPRESSIONS.items() for each in selectors(text)})
PROMTOOL = shutil.which("promtool") or shutil.which("promtool", path=ROOT / "build" / "prometheus" / "usr" / "bin")
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="there is no promtool: make promtool")


@pytest.mark.parametrize(("where", "selector"), SELECTORS, ids=lambda value: value if isinstance(value, str) else "")
def test_what_is_asked_for_is_there(where: str, selector: Selector) -> None:
    assert selector.name in exposed(), f"{where}: /metrics has no {selector.name}"
    assert {label for label, _ in selector.matchers} <= exposed()[selector.name]


def values(metric: str, label: str) -> set[str]:
    """What is asked of a label, alternatives apart."""
    found = [value for _, each in SELECTORS if each.name == metric for name, value in each.matchers if name == label]
    return {alternative for value in found for alternative in value.split("|")}


def test_settings_that_are_compared_with_exist() -> None:
    stated = values("gradserve_setting", "name")
    assert stated
    assert stated <= {name for name, value in Settings(device="cpu") if isinstance(value, int | float)}


def test_codes_that_are_looked_for_exist() -> None:
    assert values("gradserve_state_commits_total", "outcome") <= {"written", *KINDS}
    assert values("gradserve_requests_denied_total", "reason") <= set(KINDS)
    statuses = {str(kind.status) for kind in KINDS.values()}
    assert values("gradserve_requests_total", "status") - {"5.."} <= statuses


def test_reasons_of_workers_that_are_looked_for_exist() -> None:
    reasons = values("gradserve_worker_restarts_total", "reason")
    source = "".join(path.read_text(encoding="utf-8") for path in files("service/compute"))
    assert "died" in reasons
    assert not [reason for reason in reasons if f'"{reason}"' not in source]


def test_something_that_is_not_there_is_noticed() -> None:
    found = set(selectors('rate(gradserve_requests{call="a"}[5m]) / process_open_fds > up * node_load1{x!="up"}'))
    assert {each.name for each in found} == {"gradserve_requests", "process_open_fds", "up", "node_load1"}
    assert Selector("gradserve_requests", (("call", "a"),)) in found
    assert not {"gradserve_requests", "node_load1"} & set(exposed())


def test_every_alert_says_whom_it_wakes_and_what_for() -> None:
    names = [alert["alert"] for alert in alerts()]
    assert len(set(names)) == len(names)
    for alert in alerts():
        assert alert["labels"]["severity"] in ("page", "ticket")
        assert "{{ $labels.instance }}" in alert["annotations"]["summary"]


def test_every_alert_has_its_runbook() -> None:
    headings = re.findall(r"^### (Gradserve\w+)$", OPERATIONS.read_text(encoding="utf-8"), re.MULTILINE)
    assert headings == [alert["alert"] for alert in alerts()]


def test_every_alert_is_seen_to_fire() -> None:
    tests = yaml.safe_load(TESTS.read_text(encoding="utf-8"))["tests"]
    fired = {case["alertname"] for test in tests for case in test["alert_rule_test"] if case["exp_alerts"]}
    assert fired == {alert["alert"] for alert in alerts()}


def test_panels_say_what_they_show_and_lie_side_by_side() -> None:
    drawn = [panel for panel in panels() if panel["type"] != "row"]
    for key in ("id", "title"):
        stated = [panel[key] for panel in panels()]
        assert len(set(stated)) == len(stated)
    assert all(panel["targets"] and panel["fieldConfig"]["defaults"]["unit"] for panel in drawn)
    taken = [cell for panel in panels() for cell in cells(panel["gridPos"])]
    assert len(set(taken)) == len(taken)
    assert max(x for x, _ in taken) < 24


def cells(place: dict[str, int]) -> list[tuple[int, int]]:
    """The squares of the grid that a panel takes."""
    return [(place["x"] + i, place["y"] + j) for i in range(place["w"]) for j in range(place["h"])]


def test_every_metric_is_in_the_guide() -> None:
    page = (ROOT / "docs" / "guide" / "limits-and-operations.md").read_text(encoding="utf-8")
    written = set(re.findall(r"`(gradserve_\w+)`", page))
    families = {
        re.sub(r"_(bucket|sum|count|created)$", "", name) for name in exposed() if name.startswith("gradserve_")
    }
    assert families == written


def promtool(*arguments: str) -> None:
    """Run it; what it complains of is the failure."""
    assert PROMTOOL is not None
    done = subprocess.run([PROMTOOL, *arguments], cwd=PROMETHEUS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_promtool_reads_rules_and_configuration() -> None:
    promtool("check", "rules", RULES.name)
    promtool("check", "config", "prometheus.yml")


@needs_promtool
def test_alerts_fire_where_they_should_and_nowhere_else() -> None:
    promtool("test", "rules", TESTS.name)


@needs_promtool
def test_promtool_reads_what_the_dashboard_asks(tmp_path: Path) -> None:
    rules = [{"record": f"dashboard:{i}", "expr": text} for i, text in enumerate(EXPRESSIONS.values())]
    (tmp_path / "rules.yml").write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    promtool("check", "rules", str(tmp_path / "rules.yml"))
