"""HTTP front of the service: reads heads and bytes, without parsing bodies or computing.

    server ── connection ┬─ fast_door ─────────────────────── service.workers.pool
                         └─ asgi_door ── middleware ── routes ──┘

No module here reads JSON or tensors, or decides anything about a call.
"""
