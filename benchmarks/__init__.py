"""How fast, beside whom: workloads written once, run by the engine and by the peers that are installed.

What may live here: workloads, peers, the report. Figures are medians of one run in which the sides took turns; only
their ratios mean anything on another machine.
"""
