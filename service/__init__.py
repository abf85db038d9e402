"""The service: bytes in, bytes out.

    web ── store ── pool ── worker ── calls ── wire ── engine, schemas
     │       └── state         └── transport
     └── pages

`app` composes it; `settings`, `machine` and `errors` are used everywhere. Left of the worker is the front: it reads
heads and bytes, without parsing or computing. The rest executes calls, and knows nothing of HTTP.

What may live here: HTTP, settings, and the conversion between messages and the engine. What may not: mathematics
(`engine`), or the shape of messages (`schemas`).
"""
