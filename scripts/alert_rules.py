"""The alerts as an object of the Prometheus Operator: deploy/prometheus/alerts.yml inside a PrometheusRule."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_DEPLOY: Final = Path(__file__).parents[1] / "deploy"
ALERTS: Final = _DEPLOY / "prometheus/alerts.yml"
FILE: Final = _DEPLOY / "kubernetes/monitoring/rules.yaml"
_HEAD: Final = """\
# Written by `make generate` from deploy/prometheus/alerts.yml. Edit that, not this file.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: gradserve
  labels: {app.kubernetes.io/name: gradserve}
spec:
"""


def pages() -> dict[Path, str]:
    """Return the text of the object, by path."""
    lines = ALERTS.read_text(encoding="utf-8").splitlines()
    groups = lines[lines.index("groups:") :]
    return {FILE: _HEAD + "".join(f"  {line}".rstrip() + "\n" for line in groups)}
