"""Servers that share state, each on a separate machine, and faults that are injected while callers continue.

    __main__
    run ── faults ── servers ── network
     └──── traffic ─┬─ registers ── callers
                    └─ counting

Machines are network namespaces, connected by veth pairs; the servers are started by their usual commands. All responses
are checked: known results, counters, and histories of registers, by the checker of the simulation.
"""
