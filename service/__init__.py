"""The service: bytes in, bytes out.

    server ── protocol, middleware ── routes ── pool ── worker ── jsonio, validation, translate ── handlers ── engine

Left of the pool is the front: it reads heads and bytes, and neither parses nor computes. Right of it is the work,
which knows no HTTP; a `Job` goes in, a `Reply` comes out, and both can be pickled.

What may live here: HTTP, settings, and the way between messages and the engine. What may not: anything of
mathematics (that is `engine`) or of the shape of messages (that is `schemas`).
"""
