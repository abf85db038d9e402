"""Questions about a graph beside its results: cost, certificates, sources of NaN, its gradient as a graph.

    analysis, catalogue, diagnose, written_out → statements → export
    differences, point → links → chain → check (the certificate)
                       ↘ whole ↗

What may live here: uses of the engine as a whole. What may not: anything that the engine needs to run.

Files:
    analysis     Analysis of a call without running it: shapes, arithmetic, memory, and where derivatives stop
    catalogue    The op catalogue: what every op states about itself, as plain data
    chain        The chain rule, link by link: each value between `wrt` and `of` against what reads it, and nothing
                 beyond
    check        The certificate: gradients against central differences, in float64, along random directions
    diagnose     Sources of NaN and infinity: a watch over an execution, which costs a look at every result
    differences  Central differences of a function along one direction, and what they say of its gradient
    export       A gradient as a program: the client's own statements, and behind them those that compute it
    links        The links of the chain rule: each value between `wrt` and `of`, and the ops that read it
    peel         Ops that run functions, in terms of what these say: what is certified of them
    point        A program at a point, in float64 throughout: what a certificate is about, and what it runs on
    statements   Nodes as a client would write them: statements, and functions in the place of bodies
    whole        Differences of `of` itself: each node of `wrt`, leaf or not, is moved in a copy of the graph
    written_out  Nodes in ops of the registry alone: what the engine writes for itself is written out
"""
