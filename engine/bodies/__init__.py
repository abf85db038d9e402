"""Bodies: functions that ops run, how these are differentiated and batched, and how loops go back over their steps.

What may live here: what ops that run functions share. What may not: such an op, or how a body is run.
"""
