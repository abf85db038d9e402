"""The front: HTTP. It reads heads and bytes, and neither parses nor computes.

    server ── connection ┬─ fast_door ─────────────────────── service.pool.pool
                         └─ asgi_door ── middleware ── routes ──┘

What may live here: sockets, heads, bodies as bytes, responses. What may not: JSON, tensors, or anything that a call
decides.

Files:
    middleware/      ASGI middleware: everything that is decided from a request's head, before its body is touched
    access           Access to routes: decided from a request's method and the route that it takes, and from nothing
                     else
    asgi_door        Everything but computing calls: a request as an ASGI application takes it, and its answer
    body_buffer      A body for a worker: one that goes in a frame as one part, a large one received straight into
                     memory of the pool
    chunks           The chunked coding, taken off strictly and within bounds (RFC 9112, 7.1)
    connection       One connection: bytes in, requests out of them one after another, each handed to its door; answers,
                     and its end
    document_routes  The paths of the OpenAPI documents
    facade_routes    The paths of other protocols. A route finds the model, where the path says which, and hands the
                     body on
    fast_door        Computing calls: from the connection straight to the pool, and from its reply to the transport
    graph_routes     The paths of registered graphs. They are kept as the bytes that a worker has made of them
    head             Decisions that a request's head alone allows: framing, size, media types, and what a computing call
                     asks for
    hosted           The application as another server than ours runs it, or another application that has it under a
                     prefix
    incoming         A body on its way: which of the bytes that come are its, and how fast they have to
    jobs             The job that a request is, made in one place for both doors
    known_heads      Heads that came before. Clients send the same few again and again; to look one up costs a hundredth
                     of parsing it
    lifetime         Workers, state and application of a server, from their start to their end, whoever holds the
                     connections
    listening        The socket that a server listens on, and TLS by certificate files
    model_routes     The paths of models. What they say is read and checked by workers; here they are bytes that are
                     kept
    observer         Observers of every request that was answered, whichever door it came through
    origin           By which names the server may be called, and by which web pages: a browser sends what any page
                     tells it to
    paging           Long listings, page by page: how much of one a request asks for, and from where on
    parsing          A head, read: bytes up to the empty line become what the connection and both doors need to know
    query            The query of a request, read from the head so that the body need not be touched
    readiness        Readiness: a server gets work done, found out by giving it some; and its state is its own
    recorder         Every request that was answered, counted, written down and traced
    repetition       Calls that may come again: with an Idempotency-Key, the second is answered as the first was, and
                     does nothing
    request_ids      A request's id: the client's own where it is sane, else a new one
    response_head    The line and headers of a response, as bytes
    responses        Answers and problem reports as HTTP responses
    routes           The paths. A route takes raw bytes and hands them on; nothing here parses or computes
    routing          Routing: which route a request takes, so that nobody else has an opinion on paths
    sending          A large answer on its way out: written part by part as the client takes it, from the memory that it
                     lies in
    server           The process: a socket, an event loop, connections on it, and an orderly end
    server_state     State that the connections of a server share, and what is done for all of them together
    state            State that the routes share: made once, read by every request
    tensor_routes    The paths of resident tensors. Their elements are read and written by workers; here they are bytes
                     that are kept
    uploads          A body that an application takes in parts, as one block of memory, each byte of it written once
    uvicorn_server   uvicorn in place of our own connections: `--http uvicorn`. It has some of their limits, which it
                     gets
"""
