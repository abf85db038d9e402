"""Shares of those who do not know each other: whose account work goes on, whose turn it is, who gives way.

    owner    claims    turns

An owner is any name that a caller of the engine gives; without one, all belongs to the same. Nothing is set aside for
anybody: one alone has everything.

What may live here: decisions between owners. What may not: who they are, and what it is that they share.
"""
