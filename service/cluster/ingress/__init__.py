"""The ingress: one address for several servers. HAProxy carries the requests; here it is configured, started and told.

    process → configuration, table

The room tells HAProxy what to do, and watches it. No request passes here, and no server imports this.
"""
