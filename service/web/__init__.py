"""The front: HTTP. It reads heads and bytes, and neither parses nor computes.

    server ── connection ┬─ fast_door ─────────────────────── service.workers.pool
                         └─ asgi_door ── middleware ── routes ──┘

No module here reads JSON or tensors, or decides anything about a call.
"""
