"""ASGI middleware: everything that is decided from a request's head, before its body is touched.

    envelope ── an id and an arrival time for each request; the last resort for faults
      origins ── framing; by which names, and by which web pages, the server may be called
        cors ── what pages from elsewhere are told, where any may call
          guard ── size, keys and media types; bodies are counted
            slashes ── a path with a slash at its end is the path without it

What may live here: HTTP itself. What may not: JSON, tensors, or anything that a handler decides.

Files:
    cors            Cross-origin calls: which web pages may make them, by the browser's rules
    envelope        The outermost layer: a request gets its id and its time of arrival, and a fault of ours still gets a
                    report
    foreign_errors  Errors of paths that belong to other protocols: in the form that these have, since their clients
                    know no other
    guard           In front of the body: a request is refused by its head where that suffices, else its body is counted
                    as it comes
    leaving         A client that leaves: nobody needs its answer any more, so the work stops
    links           Under a prefix, where answers lead: the header `Location`, and the types of reports
    observing       Every request that another server brings is told of, as those of our own connections are
    origins         In front of everything that is decided of a request: does it come by a name, and from a page, that
                    may call?
    slashes         A slash at the end of a path: it means the path without it, where there is something
"""
