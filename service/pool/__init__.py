"""The pool of workers: jobs are admitted, queued, sent, stopped in time, and done again where a worker has ended.

    process_pool → lanes → supervisor → process

What may live here: admission, queues, turns, deadlines, the supervision of workers. What may not: HTTP, and the work.
"""
