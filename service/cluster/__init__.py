"""Servers that share a state: each owns shards of it, answers for those, and asks the owners of the others.

    composition ┬─ owner_routing ─┬─ owners ── service.observe.store
                ├─ peer_routes ───┘
                └─ pool ── shared_store ── http_peers

The room knows who has which shard, and what servers say to each other. How a shard is written, and who may do that, is
the business of `service.store`. A server without `--cluster on` imports none of it, but `remote_pieces` and
`connecting` if it has an `--ingress`. It needs the extra `cluster`.
"""
