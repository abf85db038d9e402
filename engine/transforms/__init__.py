"""Graph → graph: differentiation and batching. Each is one short interpreter over nodes; the rules are the ops'.

Files:
    expand_grad  `grad` nodes → the nodes of the gradient. Comes before everything else that is done to a graph
    forms        Forms of nodes, as numbers: nodes of one form have the same op and attributes, and operands of the same
                 types
    jacobian     Whole Jacobians: every row in one sweep of reverse mode, or every column in one of forward mode,
                 batched
    jvp          Forward mode from two reverse modes: the cotangent map is linear, and its transpose is the tangent map
    pullback     One sweep of reverse mode over forms of nodes, as arrays: what is pulled back, how many nodes that
                 writes, and which
    ragged       Lists of numbers of different lengths, one behind the other in arrays: what is done to all is done at
                 once
    sketch       Sketch of what gradients will write, as forms: what is refused costs neither the time nor the memory of
                 writing it
    tape         Rules of derivatives, run once for operands of the same types, and from then on copied node by node
    transcript   Transcript of one sweep of reverse mode, node by node, in the order of `vjp`: laid out as arrays
    vjp          Reverse mode: cotangents travel from outputs back to the nodes asked for, each op emitting its own rule
    vmap         Batching: a graph written for one example, on N examples at once
"""
