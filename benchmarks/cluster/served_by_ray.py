"""Our application as a deployment of Ray Serve: `python -m benchmarks.cluster.served_by_ray haproxy|proxy`.

Behind the ingress that Serve makes of HAProxy, or behind its own proxy. It says where it listens, and serves until a
signal.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any, Final

from benchmarks.service.servers import free

#: read by Ray when it is imported
_QUIET: Final = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
_HAPROXY: Final = {
    "RAY_SERVE_ENABLE_HA_PROXY": "1", "RAY_SERVE_THROUGHPUT_OPTIMIZED": "1", "RAY_SERVE_HAPROXY_NBTHREAD": "1",
}  # fmt: skip
_SETTINGS: Final = {
    "GRADSERVE_WORKERS": "1", "GRADSERVE_STATE": "memory", "GRADSERVE_DEVICE": "cpu", "GRADSERVE_LOG_LEVEL": "error",
}  # fmt: skip
_OBJECTS: Final = 100 << 20


def _application() -> Any:
    """Of the environment's settings; its workers live as long as the replica."""
    from service.asgi import app  # noqa: PLC0415 - in the replica

    return app


def main() -> None:
    """Deploy it, and wait."""
    os.environ.update(_QUIET | _SETTINGS, **(_HAPROXY if sys.argv[1] == "haproxy" else {}))
    told = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Ray says much on it, too
    import ray  # noqa: PLC0415 - it reads the variables when it is imported
    from ray import serve  # noqa: PLC0415

    ray.init("local", num_cpus=2, object_store_memory=_OBJECTS, include_dashboard=False, log_to_driver=False)

    class Gradserve:
        """Does nothing beside its application."""

    resources = {"num_cpus": 0.5}
    deployment = serve.deployment(max_ongoing_requests=128, graceful_shutdown_timeout_s=1, ray_actor_options=resources)
    deployed = deployment(serve.ingress(_application)(Gradserve))
    port = free()
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    serve.run(deployed.bind(), name="gradserve", route_prefix="/")
    print(f"listening on http://127.0.0.1:{port}", file=told, flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    serve.shutdown()
    ray.shutdown()


if __name__ == "__main__":
    main()
