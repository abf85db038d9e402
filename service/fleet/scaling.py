"""The old import path of `service.cluster.fleet.scaling`."""

from service.cluster.fleet.scaling import by_work

__all__ = ["by_work"]
