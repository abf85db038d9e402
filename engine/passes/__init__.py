"""Graph → graph, same results: what is not needed goes, what is said twice is said once, what is known is computed.

Passes run after differentiation, when no node is referred to by the client's name for it any more.

Files:
    allowance   What optimising one request may take: the arithmetic of constants that are computed, and time
    arithmetic  Rules of simplification for numbers: neutral elements, factors and signs
    cse         Common subexpressions: value numbering, so that what is said twice is computed once
    dce         Dead code: nodes that no output depends on
    fold        Constant folding: what depends on constants alone is computed once, while planning; small things only
    matching    What rules of simplification look at, and what they write: nothing that changes nothing
    movement    Rules of simplification for what moves or repeats elements
    pipeline    The passes, in their order, each with a name, a switch and a timing
    products    Rules of simplification for products of matrices: a sum of one need not make all of it, nor a transpose
                move it
    simplify    Algebraic simplification: what differentiation writes down mechanically, said shorter
    spans       A rule of simplification for tensors that are zero but for spans along one axis: gradients of slices are
"""
