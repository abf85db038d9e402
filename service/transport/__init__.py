"""Transport between the front and the workers, and the memory that it goes by.

    job → frames; shared_buffers → body_memory, tensor_memory

What may live here: jobs and replies, messages as bytes, memory that two processes see, who holds how much of it. What
may not: who does a job, and how.

Files:
    body_memory      The bodies that the front receives: memory that workers can see, claimed as they come
    claims           The bytes that the server holds for others: claimed as they come, and taken back from whoever holds
                     most
    control_page     Control page that a worker process and the front both see: which job is executed, what runs, which
                     are to stop
    frames           The messages between the front and a worker process, as bytes: a fixed part each, then texts and a
                     body
    heap_allocation  Memory of this process alone, where nobody else has to see it
    job              Messages between the front and the workers: a `Job` goes in, a `Reply` comes out
    job_result       Outcome of a job at a worker: a reply; or it was not done, for what the worker lacks
    offload          Work on bytes, which takes longer the more they are: done on the event loop where they are few,
                     else beside it
    resident         Tensors that stay with the server, as a job reads them
    shared_buffers   Bodies in memory that two processes share: written by one, read by the other, and used again
    sum_parts        Parts of a job that is a sum over examples: pieces of its blocks, and the end, where the sums of
                     pieces meet
    tensor_memory    The memory of resident tensors: each version has its own, which workers can see where it is large
"""
