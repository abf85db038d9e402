"""The opset: one class an op, in families. Adding an op is adding a class (or a file) here and nothing else.

What may live here: definitions of ops, and helpers that several ops of a family share. What may not: lists of ops,
or anything that knows of graphs as a whole.
"""
