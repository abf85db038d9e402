"""Applications of Ray Serve: a server on each machine, and ingresses in front of them.

They are two applications, so that one can be updated without the other; the directory is all that they share. `serve
deploy deploy/ray/gradserve.yaml` names them, and the options of deployments in that file override those here. No
request passes through Serve: its proxies are not needed, and replicas serve no requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from service.core.installed import needs_extra

with needs_extra("a fleet", "Ray", "ray"):
    from ray import serve

from service.cluster.fleet.replicas import Ingress, NodeReplica

#: seconds that Serve waits for a replica beyond the grace period of its server or HAProxy
_EXTRA_SECONDS: Final = 15.0
_OPTIONS: Final[Mapping[str, Any]] = {
    "max_replicas_per_node": 1,
    "health_check_period_s": 1,
    "health_check_timeout_s": 5,
    "graceful_shutdown_wait_loop_s": 0.1,
}


def servers(settings: Mapping[str, Any]) -> serve.Application:
    """Return the application of servers; `settings` are those of each server, by name."""
    deployment = serve.deployment(
        NodeReplica,
        name="Node",
        graceful_shutdown_timeout_s=float(settings.get("shutdown_grace", 30)) + _EXTRA_SECONDS,
        **_OPTIONS,
    )
    return deployment.bind(dict(settings))


def ingress(arguments: Mapping[str, Any]) -> serve.Application:
    """Return the application of ingresses: `host`, `port`, and fields of an IngressLayout."""
    deployment = serve.deployment(
        Ingress,
        name="Ingress",
        ray_actor_options={"num_cpus": 0.1},
        graceful_shutdown_timeout_s=float(arguments.get("grace_seconds", 30)) + _EXTRA_SECONDS,
        **_OPTIONS,
    )
    return deployment.bind(**arguments)
