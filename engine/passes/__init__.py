"""Graph → graph, same results: what is not needed goes, what is said twice is said once, what is known is computed.

Passes run after differentiation, when no node is referred to by the client's name for it any more.

Files:
    allowance  Allowance of optimising for one request: the arithmetic of constants that are computed, and time
    cse        Common subexpressions: value numbering, so that what is said twice is computed once
    dce        Dead code: nodes that no output depends on, and results of loops that nobody reads
    fold       Constant folding: what depends on constants alone is computed once, while planning; small things only
    pipeline   The passes, in their order, each with a name, a switch and a timing
    simplify   Algebraic simplification: what differentiation writes down mechanically, said shorter
"""
