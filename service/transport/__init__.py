"""What passes between the front and the workers, and the memory that it lies in.

    job → frames; slabs → rooms, shelf

What may live here: jobs and replies, messages as bytes, memory that two processes see, who holds how much of it. What
may not: who does a job, and how.
"""
