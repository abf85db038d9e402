"""Transport between the front and the workers, and the memory that it goes by.

    job → frames; shared_buffers → body_memory, tensor_memory

What may live here: jobs and replies, messages as bytes, memory that two processes see, who holds how much of it. What
may not: who does a job, and how.
"""
