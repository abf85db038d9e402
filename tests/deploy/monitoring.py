"""The metrics that the dashboard and the alerts query, and those that /metrics, HAProxy and Ray expose."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from prometheus_client.parser import text_string_to_metric_families

from service.core.settings import Settings
from service.observe.exposition import Exposition
from service.observe.tally import ClusterStats, Tally
from service.workers.pool import Stats
from service.workers.task import Reply
from tests.service.application import open_pool

ROOT = Path(__file__).parents[2]
PROMETHEUS = ROOT / "deploy" / "prometheus"
RULES, TESTS = PROMETHEUS / "alerts.yml", PROMETHEUS / "alerts_test.yml"
DASHBOARD = ROOT / "deploy" / "grafana" / "gradserve.json"
#: recorded names and labels of other programs' metrics: a name and its labels in each line
EXPORTERS = Path(__file__).parent / "exporters"

Json = dict[str, Any]

_STRING = re.compile(r'"[^"]*"')
#: a metric: a name followed by matchers, or a name with a known prefix
_SELECTED = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\{([^}]*)\}")
_NAMED = re.compile(r"\b(?:gradserve|haproxy|process|ray)_[a-z0-9_]+|\bup\b")
_MATCHER = re.compile(r'([a-z_]+)(?:=~|!~|!=|=)"([^"]*)"')
#: labels that Prometheus adds when it scrapes
_SCRAPE_LABELS = frozenset({"job", "instance"})


class Selector(NamedTuple):
    """A metric and the matchers of its labels."""

    name: str
    matchers: tuple[tuple[str, str], ...] = ()


def alerts() -> list[Json]:
    """The rules."""
    return [rule for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"] for rule in group["rules"]]


def panels() -> list[Json]:
    """The panels of the dashboard, rows included."""
    result: list[Json] = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    return result


def expressions() -> dict[str, str]:
    """Every expression by its place, with the dashboard's variables filled in."""
    result = {rule["alert"]: rule["expr"] for rule in alerts()}
    for panel in panels():
        for target in panel.get("targets", ()):
            result[f"{panel['title']} {target['refId']}"] = _filled(target["expr"])
    for note in json.loads(DASHBOARD.read_text(encoding="utf-8"))["annotations"]["list"]:
        result[f"annotation {note['name']}"] = _filled(note["expr"])
    return result


def selectors(expression: str) -> Iterator[Selector]:
    """The metrics of an expression."""
    for name, matchers in _SELECTED.findall(expression):
        yield Selector(name, tuple(_MATCHER.findall(matchers)))
    for name in _NAMED.findall(_STRING.sub('""', expression)):
        yield Selector(name)


def queried(prefix: str) -> set[str]:
    """The metrics with a prefix that the alerts and the dashboard query."""
    names = {each.name for text in expressions().values() for each in selectors(text)}
    return {name for name in names if name.startswith(prefix)}


def _filled(expression: str) -> str:
    return expression.replace("$__rate_interval", "5m").replace("$instance", ".*")


@cache
def known() -> dict[str, frozenset[str]]:
    """The names of all samples that Prometheus scrapes, of servers, HAProxy and Ray, and their labels."""
    return {"up": frozenset(_SCRAPE_LABELS), **recorded("haproxy"), **recorded("ray"), **exposed()}


def recorded(exporter: str) -> dict[str, frozenset[str]]:
    """The recorded metrics of another program, and their labels."""
    lines = (EXPORTERS / f"{exporter}.txt").read_text(encoding="utf-8").splitlines()
    metrics = (line.split() for line in lines if not line.startswith("#"))
    return {name: _SCRAPE_LABELS.union(*(text.split(",") for text in labels)) for name, *labels in metrics}


def names_of(text: str) -> set[str]:
    """The names of the samples of a scrape."""
    return {sample.name for family in text_string_to_metric_families(text) for sample in family.samples}


@cache
def exposed() -> dict[str, frozenset[str]]:
    """The names of all samples of a server's /metrics, and their labels."""
    settings, tally = Settings(device="cpu", compile="off"), Tally()
    pool = open_pool(settings)
    pool.stats = lambda: Stats({"quick": 0}, 0, {"quick": 1}, {"died": 1})  # type: ignore[method-assign]
    tally.count("gradients", 200, 1, 1, 0.1)
    tally.count_work(Reply(200, "", []))
    tally.count_commit("written", 0.1)
    tally.cluster = lambda: ClusterStats(1, 0, 0, {})
    text, _ = Exposition(tally, pool, settings).text("")
    result: dict[str, frozenset[str]] = {}
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            result[sample.name] = frozenset(sample.labels) | _SCRAPE_LABELS
    return result
