"""The service: bytes in, bytes out.

    web ── store ── pool ── worker ── calls ── wire ── engine, schemas
     │       └── state         └── transport
     └── pages

`app` puts them together; `settings`, `machine` and `errors` are known to all. Left of the worker is the front: it reads
heads and bytes, and neither parses nor computes. From there on it is the work, which knows no HTTP.

What may live here: HTTP, settings, and the way between messages and the engine. What may not: anything of
mathematics (that is `engine`) or of the shape of messages (that is `schemas`).
"""
