"""A worker: the loop inside a process, the way of a job through a call, and what the process may not do.

    child → attending → worker_loop → worker → job_context, registration → calls

What may live here: whatever happens in the process that computes. What may not: other workers, and HTTP.

Files:
    answers       The large answers of a worker process: written into buffers of its own, which the front sends from and
                  gives back
    attending     A worker process from its start on: told the settings, it opens its device, and serves the front to
                  the end
    blas          The threads of BLAS: the workers divide the processors, so that together they want no more than there
                  are
    child         A worker process: `python -m service.worker.child`, with the descriptors of its sockets and of its
                  control page
    confinement   Confinement by the kernel alone: files are Landlock's, system calls are seccomp's
    job_context   A job while a worker has it: how much time it has, and when its parts ended
    kernels       Store of the kernels that a server has compiled
    model_check   Check of a model before it is kept: all that is wrong with it is said at once
    model_jobs    Two jobs of a model that is put: what is asked is read, and, once its graph is found, checked and
                  written down
    permitted     Permitted files of a worker: what a server is made of, and where its kernels are kept
    registration  A graph that is to be kept is checked by a worker, and written as it will be answered and read again
    rehearsal     Rehearsal of a worker before it is ready: what is made at the first use is made in nobody's time
    residents     The resident tensors that a worker process knows: what the front has told it, in the order in which it
                  did
    sandbox       Sandbox of a worker process: it does not outlive the front, push it aside, or take memory without end
    sharing       Sharing of work by several jobs that are done as one
    sharing_loop  Inside a worker process that executes together what waits together: a batch of the socket's, and its
                  replies
    sum_jobs      Sums over examples that several workers do: what one of them is asked for, a piece, or the end of all
    tensor_jobs   Two jobs that are no calls: a tensor that is to be kept is read by a worker, and one that is kept is
                  written by one
    together      Requests for the same plan that wait together, as one execution: their numbers are rows of its feeds
    worker        The work of one request: bytes to bytes. A job goes in, a reply comes out, and neither holds on to
                  anything
    worker_loop   Inside a worker process: jobs from the socket, one by one, and their replies to it, those of a batch
                  at once
"""
