"""Rules of simplification, for ops to declare: each says when a node comes down to less, and to what.

They are tried by `engine.passes.simplify`. Every one keeps the value, but for the sign of a zero (x + 0 becomes
x, also where x is −0.0) and, where a factor is put together from several, a sum is taken before a product or a
product is transposed, for the last digits. None drops a factor that could be infinite or NaN: x · 0 stays.

What may live here: rules that look at a node, its operands and what made these. What may not: walks over
graphs, or the definition of an op.
"""
