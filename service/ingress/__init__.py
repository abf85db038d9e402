"""The ingress: one address for several servers. HAProxy carries the requests; here it is configured, started and told.

    process
    configuration, program, table
    reports

What may live here: what HAProxy is told, and watching it. What may not: carrying requests, and anything that a server
needs: no server imports this.

Files:
    configuration  Configuration of HAProxy: a text that follows from a layout alone
    process        Process of HAProxy: its files, its start, and its end
    program        Program of HAProxy: where it is, and whether it is new enough
    reports        Reports of HAProxy's own errors, in the form of the servers' reports
    table          Table of the servers that HAProxy sends requests to, changed by its runtime socket
"""
