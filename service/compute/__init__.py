"""The work: a `Job` goes in, a `Reply` comes out; who does it, and how much at a time, is decided here.

    blas, pool → worker → turn, registration → calls

What may live here: admission, workers, the way of a job through a call. What may not: HTTP.
"""
