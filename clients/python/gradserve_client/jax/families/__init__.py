"""Rules for JAX primitives, one module per family. Importing a module adds its rules to `table.RULES`.

A rule takes a `Call`, adds nodes to the call's graph and returns the results. It raises Blocked for what it cannot
translate. The first paragraph of its docstring is its row in docs/reference/jax.md.

    @RULES("exp2")
    def exp2(call: Call) -> Results:
        return call.like(2).pow(call.node())
"""
