"""Applications of Ray Serve: a server on each machine, and before them an ingress.

Two, so that an update of the one leaves the other as it is; the directory is all that they share. `serve deploy
deploy/ray/gradserve.yaml` names them; what stands there of deployments wins over what is said here. No request goes by
Serve: its proxies are not needed, and no replica has anything to answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from service.core.installed import needs_extra

with needs_extra("a fleet", "Ray", "ray"):
    from ray import serve

from service.cluster.fleet.replicas import Ingress, NodeReplica

#: seconds that Serve waits for a replica beyond those that its server, or HAProxy, has to end
_MORE: Final = 15.0
_OPTIONS: Final[Mapping[str, Any]] = {
    "max_replicas_per_node": 1,
    "health_check_period_s": 1,
    "health_check_timeout_s": 5,
    "graceful_shutdown_wait_loop_s": 0.1,
}


def servers(settings: Mapping[str, Any]) -> serve.Application:
    """Return the application of servers, of these settings of each by their names."""
    node = serve.deployment(
        NodeReplica,
        name="Node",
        graceful_shutdown_timeout_s=float(settings.get("shutdown_grace", 30)) + _MORE,
        **_OPTIONS,
    )
    return node.bind(dict(settings))


def ingress(arguments: Mapping[str, Any]) -> serve.Application:
    """Return the application of ingresses: `host`, `port`, and fields of an IngressLayout."""
    entrance = serve.deployment(
        Ingress,
        name="Ingress",
        ray_actor_options={"num_cpus": 0.1},
        graceful_shutdown_timeout_s=float(arguments.get("grace_seconds", 30)) + _MORE,
        **_OPTIONS,
    )
    return entrance.bind(**arguments)
