"""The old import path of `service.cluster.fleet.application`."""

from service.cluster.fleet.application import ingress, servers

__all__ = ["ingress", "servers"]
