"""Servers that share a state, each on a machine of its own, and all that may become of them while callers go on.

    __main__
    run ── faults ── servers ── network
     └──── traffic ─┬─ registers ── callers
                    └─ counting

Machines are namespaces for the network, joined by veth pairs; processes are those that users start. What callers are
told is checked: known answers, numbers that count, and histories of registers by the checker of the simulation.
"""
