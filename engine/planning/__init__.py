"""From a call of a program to a plan, which knows where every result will lie, and plans kept for the next time.

    compiler → fuse → groups, recompute, layout
        ↘ cache  ↘ plan → storage → arena

A `fused` node is written here, and runs like any other.

What may live here: decisions that are made before anything runs. What may not: arrays of results.
"""
