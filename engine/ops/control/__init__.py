"""Control flow: ops that run functions, once, in loops or until nothing changes."""
