"""Questions about a graph beside its results: cost, certificates, sources of NaN, its gradient as a graph.

    analysis, catalogue, diagnose, written_out → statements → export
    differences, point → links → chain → check (the certificate)
                       ↘ whole ↗

What may live here: uses of the engine as a whole. What may not: anything that the engine needs to run.
"""
