"""The old import path of `service.cluster.fleet.scaling`."""

from __future__ import annotations

from service.cluster.fleet.scaling import by_work

__all__ = ["by_work"]
