"""The compiler: from a call of a program to a plan, which knows where every result will lie; and a cache of plans.

What may live here: decisions that are made before anything runs. What may not: arrays of results.
"""
