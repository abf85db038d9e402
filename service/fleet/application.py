"""Application of Ray Serve: a server on each machine, and before them an ingress.

`serve deploy deploy/ray/gradserve.yaml` names `build`; what stands there of deployments wins over what is said here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

try:
    from ray import serve
except ImportError as error:
    raise ImportError(f"a fleet needs Ray: pip install 'gradserve[ray]' ({error})") from None

from service.fleet.front import Ingress
from service.fleet.node import Node


def build(arguments: Mapping[str, Any]) -> serve.Application:
    """The application, of `settings` of servers by their names, and of the `ingress`, both optional.

    No request goes by Serve: its proxies are not needed, and no replica has anything to answer.
    """
    settings, ingress = dict(arguments.get("settings", {})), dict(arguments.get("ingress", {}))
    node = serve.deployment(
        Node,
        name="Node",
        max_replicas_per_node=1,
        health_check_period_s=1,
        health_check_timeout_s=5,
        graceful_shutdown_wait_loop_s=0.1,
        graceful_shutdown_timeout_s=float(settings.get("shutdown_grace", 30)) + 15,
    )
    front = serve.deployment(
        Ingress,
        name="Ingress",
        max_replicas_per_node=1,
        ray_actor_options={"num_cpus": 0.1},
        health_check_period_s=1,
        health_check_timeout_s=5,
        graceful_shutdown_wait_loop_s=0.1,
        graceful_shutdown_timeout_s=float(ingress.get("grace_seconds", 30)) + 15,
    )
    return front.bind(node.bind(settings), **ingress)
