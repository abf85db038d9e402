"""The front: HTTP. It reads heads and bytes, and neither parses nor computes.

    server ── connection ┬─ fast_door ─────────────────────── service.workers.pool
                         └─ asgi_door ── middleware ── routes ──┘

What may live here: sockets, heads, bodies as bytes, responses. What may not: JSON, tensors, or anything that a call
decides.
"""
