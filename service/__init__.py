"""The service: bytes in, bytes out.

    web ── compute ── calls ── wire ── engine, schemas
     └──── pages ──────┘

`app` puts them together; `settings`, `machine` and `errors` are known to all. Left of `compute` is the front: it reads
heads and bytes, and neither parses nor computes. Right of it is the work, which knows no HTTP.

What may live here: HTTP, settings, and the way between messages and the engine. What may not: anything of
mathematics (that is `engine`) or of the shape of messages (that is `schemas`).
"""
