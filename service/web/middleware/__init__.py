"""ASGI middleware: everything that is decided from a request's head, before its body is touched.

    envelope ── an id and an arrival time for each request; the last resort for faults
      origins ── framing; by which names, and by which web pages, the server may be called
        cors ── what pages from elsewhere are told, where any may call
          guard ── size, keys and media types; bodies are counted
            slashes ── a path with a slash at its end is the path without it

What may live here: HTTP itself. What may not: JSON, tensors, or anything that a handler decides.
"""
