"""ASGI middleware: everything that is decided from a request's head, before its body is touched.

    envelope ── an id and an arrival time for each request; the last resort for faults
      cors ── which web pages may call
        guard ── framing, size, keys and media types; bodies are counted
          slashes ── a path with a slash at its end is the path without it

What may live here: HTTP itself. What may not: JSON, tensors, or anything that a handler decides.
"""
