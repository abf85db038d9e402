"""Ingress: one address for several servers. HAProxy carries the requests; this room configures, starts and updates it.

    process → configuration, table

No request passes through this code, and no server imports it.
"""
