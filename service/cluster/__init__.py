"""Servers that share state: each owns shards of it, answers for those, and asks the owners of the others.

    composition ┬─ owner_routing ─┬─ owners ── service.observe.store
                ├─ peer_routes ───┘
                └─ pool ── shared_store ── http_peers

This room knows who owns which shard, and the messages between servers. How a shard is written, and who may write it, is
in `service.store`. A server without `--cluster on` imports none of this, except `remote_pieces` and `connecting` if it
has an `--ingress`. It needs the extra `cluster`.
"""
