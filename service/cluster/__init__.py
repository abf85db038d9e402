"""Servers that share a state: each owns shards of it, answers for those, and asks the owners of the others.

    composition ┬─ placing ─┬─ owners ┬─ owning ── service.observe.store
                ├─ between ─┘         └─ directory
                └─ pool ── shared_store ── peers

What may live here: who has which shard, and what servers say to each other. What may not: how a shard is written, and
who may do that; that is `service.store`. A server without `--cluster on` imports none of it, and
`elsewhere` and `connecting` alone where it has an `--ingress`. It needs the extra `cluster`.
"""
