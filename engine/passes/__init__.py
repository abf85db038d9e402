"""Graph → graph, same results: what is not needed goes, what is said twice is said once, what is known is computed.

Passes run after differentiation, when no node is referred to by the client's name for it any more.
"""
