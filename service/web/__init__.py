"""HTTP front of the service: reads heads and bytes, without parsing bodies or computing.

    server ── connection ┬─ fast_handler ─────────────────────── service.workers.pool
                         └─ asgi_handler ── middleware ── routes ──┘

No module here reads JSON or tensors, or decides anything about a call.
"""
