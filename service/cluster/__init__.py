"""Servers that share a state: each owns shards of it, answers for those, and asks the owners of the others.

    composition ┬─ placing ─┬─ owners ┬─ owning ── service.store
                ├─ between ─┘         └─ directory
                └─ pool ── shared_store ── peers

What may live here: who has which shard, and what servers say to each other. What may not: how a shard is written, and
who may do that; that is `service.state`. A server without `--cluster on` imports none of it, and
`elsewhere` and `connecting` alone where it has an `--ingress`.

Files:
    between         The paths between servers, in front of all others: whoever does not know the secret finds nothing
                    there
    composition     The parts of a server that shares its state with others, put together
    connecting      Connections to other servers and to the ingress, over HTTP: made when first needed, and kept
    directory       Directory of owners: who has a shard, as its last commit tells it
    elsewhere       Pieces of sums that other servers do: ordinary requests through the ingress, with the key of whoever
                    asked for all
    expected_reads  Tensors that jobs are expected to read, by what jobs like them have read
    http_peers      Other servers over HTTP: connections that are kept, questions, and whole requests that are passed on
    owners          Owners of shards: who has one is found out, asked, and replaced where it does not answer
    owning          Shards that this server has: each is taken by an opening, answered from memory, and let go of as a
                    whole
    peers           Other servers, as this one asks them: what is asked, what they answer, and whether they are there at
                    all
    placing         Requests about what is kept are answered by its owner: here, or passed on whole
    pool            The pool of workers of a server that shares its state: each job reads versions that were found for
                    it alone
    protocol        Messages between servers: JSON with bytes behind it, over HTTP, and what says that a server sent
                    them
    questions       Questions of other servers, as the owner of a shard answers them
    recent          What was used last, within so many bytes
    shared_store    State that servers share, as computing calls need it: what this server owns is here, the owner is
                    asked for the rest
    speculation     Jobs that are done with the versions that were last known, while their owner is asked whether there
                    are others
"""
