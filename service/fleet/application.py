"""The old import path of `service.cluster.fleet.application`."""

from __future__ import annotations

from service.cluster.fleet.application import ingress, servers

__all__ = ["ingress", "servers"]
