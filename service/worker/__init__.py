"""A worker: the loop inside a process, the way of a task through a call, and what the process may not do.

    child → attending → worker_loop → worker → job_context, registration → calls

What may live here: whatever happens in the process that computes. What may not: other workers, and HTTP.
"""
