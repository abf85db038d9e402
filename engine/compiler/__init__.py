"""The compiler: turn a call of a program into a plan that knows where every result is stored, and cache plans.

This package decides everything that can be decided before a run. It never holds arrays of results.
"""
