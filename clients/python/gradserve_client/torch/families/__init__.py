"""Rules for PyTorch ops, one module per family. Importing a module adds its rules to `table.RULES`.

A rule takes a `Call`, adds nodes to the call's graph and returns the results. It raises Blocked for what it cannot
translate.

    @RULES("silu")
    def silu(call: Call) -> Results:
        return call.node().silu()
"""
