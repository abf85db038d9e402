"""The front: HTTP. It reads heads and bytes, and neither parses nor computes.

    server ── protocol, middleware ── routes ── service.compute.pool

What may live here: sockets, heads, bodies as bytes, responses. What may not: JSON, tensors, or anything that a call
decides.
"""
