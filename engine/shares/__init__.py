"""Shares of those who do not know each other: whose account work goes on, whose turn it is, who gives way.

    owner    claims    turns

An owner is any name that a caller of the engine gives; without one, all belongs to the same. Nothing is set aside for
anybody: one alone has everything.

What may live here: decisions between owners. What may not: who they are, and what it is that they share.

Files:
    fair_eviction  Eviction that is fair: who holds what of something bounded, and what goes first where it is too much
    owner          Owner on whose account the work of this thread goes, from here on
    turns          Turns where several want the same: whose it is, by what each of them has had
"""
