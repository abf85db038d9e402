"""Automatic differentiation and batching: transforms from graph to graph, and the calls that ask for them.

Each transform (`vjp`, `jvp`, `vmap`) is one short interpreter over nodes; the rules are the ops'. What may live here:
transforms, the bodies of control flow, calls. What may not: rules of single ops, execution, anything of the wire.
"""
