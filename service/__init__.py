"""The service: bytes in, bytes out.

    web ── store ── pool ── worker ── calls ── wire ── engine, schemas
     │       └── state         └── transport
     └── pages

`app` puts them together; `settings`, `machine` and `errors` are known to all. Left of the worker is the front: it reads
heads and bytes, and neither parses nor computes. From there on it is the work, which knows no HTTP.

What may live here: HTTP, settings, and the way between messages and the engine. What may not: anything of
mathematics (that is `engine`) or of the shape of messages (that is `schemas`).

Files:
    calls/      The calls: one definition each, found by walking this package
    cluster/    Servers that share a state: each owns shards of it, answers for those, and asks the owners of the others
    commands/   Commands of `gradserve` that need more than a few lines, one a file
    doctor/     Diagnosis whether a server will do well here: what `gradserve doctor` looks at, one thing after the
                other
    facades/    Facades: protocols of others, served by our models. What computes are the calls that exist
    fleet/      The fleet: servers and ingresses as applications of Ray Serve, which starts, watches, replaces and
                counts them
    ingress/    The ingress: one address for several servers. HAProxy carries the requests; here it is configured,
                started and told
    keys/       Keys: who may call, what each may do, and how much of it
    observe/    Observation by an operator: counts, for Prometheus; a line for each request, and a trace; a banner at
                the start
    pages/      Pages that the server has about itself: the OpenAPI documents, the catalogue, the pages for people
    pool/       The pool of workers: jobs are admitted, queued, sent, stopped in time, and done again where a worker has
                ended
    state/      State that a server keeps for its callers between requests: graphs, tensors, and answers that may be
                asked for again
    transport/  Transport between the front and the workers, and the memory that it goes by
    web/        The front: HTTP. It reads heads and bytes, and neither parses nor computes
    wire/       Between bytes and the engine's terms: JSON, safetensors, tensors, graphs, requests and answers
    worker/     A worker: the loop inside a process, the way of a job through a call, and what the process may not do
    __main__    The command `gradserve`, which is also `python -m service`
    allocation  Memory for bytes that others write or read, and that somebody gives back
    app         The composition root: settings in, application out. The only place that knows all parts
    arguments   The command line as a command and its options, or one sentence on what is wrong with it
    asgi        The whole service as an ASGI application, for any server of such: `uvicorn service.asgi:app`
    budget      Budget of a server's processes: what they take by themselves, and every share of what a worker may take
                beside
    cli         The command `gradserve`: serve, settings, ops, keys, backup, restore, ingress, doctor
    collector   Python's garbage collector, as each kind of process of the service has it
    errors      Every way in which a request can be refused: one table, one exception, one form of report
    logs        The log of the processes of a server: lines on stderr, as text or as JSON, each in one form
    machine     Means of this machine, or the container it runs in: the ground of the default budgets
    parent      End of a process with the one that started it, however that ends
    prefix      The prefix under which the service is served, where it is a part of another application or behind a
                proxy
    settings    Every setting of the server: its default, its limits, and what it is for
    sizes       Sizes in bytes, as people write and read them: 4GiB, 64MiB, 500MB, 1024
    spelling    Spelling of words that are not known: what a person may have meant
    store       Everything that a server keeps for its callers, and the way there from what a worker replies: one for
                both doors
"""
