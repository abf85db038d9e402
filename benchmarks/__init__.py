"""How fast, beside whom: workloads written once, run by the engine and by the peers that are installed.

    problems/ (what is computed) → sides (who computes it) → turns (how it is timed) → report (JSON) → page, picture

What may live here: workloads, peers, the report. Figures are medians of one run in which the sides took turns; only
their ratios mean anything on another machine.
"""
