"""The ingress: one address for several servers. HAProxy carries the requests; here it is configured, started and told.

    process
    configuration, program, table
    reports

What may live here: what HAProxy is told, and watching it. What may not: carrying requests, and anything that a server
needs: no server imports this.
"""
