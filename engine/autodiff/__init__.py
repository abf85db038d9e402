"""Automatic differentiation and batching: transforms from graph to graph, and the calls that request them.

Each transform (`vjp`, `jvp`, `vmap`) is one short interpreter over nodes; the rules belong to the ops. This package
holds transforms, bodies of control flow, and calls. Rules of single ops, execution and the wire format live elsewhere.
"""
