"""Servers with a shared state, each on a machine of its own, and the faults that hit them while callers go on.

    __main__
    run ── faults ── servers ── network
     └──── traffic ─┬─ registers ── callers
                    └─ counting

Machines are network namespaces, joined by veth pairs; processes are those that users start. The answers to callers are
checked: known answers, counters, and histories of registers by the checker of the simulation.
"""
