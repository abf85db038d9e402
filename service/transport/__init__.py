"""Transport between the front and the workers, and the memory that it goes by.

    task → frames; shared_buffers → body_memory, tensor_memory

What may live here: tasks and replies, messages as bytes, memory that two processes see, who holds how much of it. What
may not: who does a task, and how.
"""
